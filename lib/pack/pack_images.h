// Packs a folder of images: list, split, order, parts, manifest.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chunk/chunk_plan.h"
#include "decode/image_decoder.h"
#include "listing/sample_list.h"
#include "manifest/manifest.h"
#include "pack/codec_choice.h"
#include "pack/disk_space.h"
#include "transform/image_transform.h"

namespace chunkhit {

/// In which order samples are packed.
enum class Order { shuffle, input };
inline constexpr std::array<std::string_view, 2> kOrderNames{"shuffle", "input"};
/// Whether images are turned as their EXIF orientation says.
enum class Exif { apply, ignore };
inline constexpr std::array<std::string_view, 2> kExifNames{"apply", "ignore"};

/// What happens with a class that --classes does not list.
enum class ClassesExtra { error, append };
inline constexpr std::array<std::string_view, 2> kClassesExtraNames{"error", "append"};

/// One share of a split.
struct SplitShare {
  std::string name;  ///< of the pack's folder under the output
  double share = 0;  ///< above 0; all shares add up to 1
};

/// What is wanted; recorded in the manifest and part of what makes two packs equal.
struct PackImagesSpec {
  std::string labels;  ///< a CSV file or "-"; empty: class folders
  LabelCsvSpec columns;
  ClassFoldersSpec folders;  ///< without a CSV
  std::string classes;       ///< file or pack whose classes number these; empty: the sorted names do
  ClassesExtra classes_extra = ClassesExtra::error;
  bool follow_symlinks = false;  ///< also out of ROOT
  TransformSpec transform;
  Exif exif = Exif::apply;
  Check check = Check::whole;
  bool accept_warnings = false;              ///< pack damaged images as far as they can be decoded
  std::uint32_t max_seconds_per_image = 10;  ///< CPU time of decoding; 0: no limit
  std::uint64_t max_pixels = 256'000'000;
  std::uint64_t max_input_bytes = 256ull << 20;
  std::uint64_t max_decode_bytes = 1ull << 30;  ///< what one image may hold while it is decoded and resized
  std::string container = "hdf5";
  std::string codec;                ///< a codec's name, ":LEVEL" may follow; empty: the container's default
  std::uint64_t chunk_samples = 0;  ///< 0: computed
  std::uint64_t chunk_bytes = 0;    ///< 0: computed
  std::uint64_t part_bytes = 1ull << 30;
  Order order = Order::shuffle;
  std::uint64_t seed = 0;
  std::vector<SplitShare> split;  ///< empty: one pack, or one for each of folders.split_folders
};

/// How far a run is.
struct PackProgress {
  enum class Phase { listing, packing, finishing };
  Phase phase = Phase::listing;
  std::string pack;             ///< the pack's folder
  std::uint64_t rows_done = 0;  ///< of all packs, those of finished parts included
  std::uint64_t rows_total = 0;
  std::uint64_t rows_skipped = 0;  ///< done by an earlier run
  std::uint64_t rejected = 0;
};

/// How to run; not recorded.
struct PackImagesOptions {
  std::string root;           ///< folder of the images
  std::string output;         ///< folder of the pack, or of the packs of a split
  std::uint32_t threads = 0;  ///< 0: all allowed CPUs, or as many as fit memory_bytes
  std::uint64_t memory_bytes =
      2ull << 30;                     ///< what the process may hold; what is packed does not depend on it
  bool fail_on_error = false;         ///< stop at the first reject
  double max_error_share = 0.01;      ///< stop when more of all rows (one is allowed) …
  std::uint64_t max_error_count = 0;  ///< … or, when not 0, more than this many
  bool force = false;                 ///< remove what an earlier run left
  bool trust_inputs = false;          ///< do not look whether files changed since an earlier run packed them
  bool reject_unreadable = false;  ///< reject what the machine cannot read, rather than stop with try_again
  std::string tool;                ///< "pack-images 0.1.0"
  std::string command_line;        ///< for run.json
  std::function<void(const PackProgress&)> on_progress;  ///< called by one thread at a time
  const std::atomic<bool>* stop = nullptr;               ///< set to end after the samples in hand
};

/// Rejects with like reasons.
struct RejectCount {
  std::uint64_t count = 0;
  std::string first;     ///< the first one's reason
  bool are_same = true;  ///< all have it, word by word
};

/// What happened to one pack.
struct PackReport {
  std::string path;
  std::uint64_t rows = 0;
  std::uint64_t samples = 0;
  std::uint64_t rejected = 0;
  std::uint64_t warned = 0;  ///< samples that were packed with warnings
  std::uint64_t parts = 0;
  std::uint64_t parts_kept = 0;  ///< finished by an earlier run
  std::uint64_t bytes = 0;       ///< of all parts
  std::uint64_t raw_bytes = 0;   ///< of all samples
  bool already_finished = false;
  bool repaired = false;  ///< finished before, but not whole: what was missing was written again
  std::map<std::string, RejectCount> reasons;  ///< rejects by the first words of their reason
  std::vector<std::string> notices;            ///< what became of files that an earlier run packed
};

/// What the labels of a list are; ids of classes belong to this list alone.
struct LabelSummary {
  LabelKind kind = LabelKind::class_id;
  std::vector<std::string> columns;
  std::vector<std::string> classes;  ///< names by id; empty where the list has ids
  std::uint64_t class_count = 0;     ///< different ids of the samples
};

/// What happened to all.
struct PackImagesReport {
  std::vector<PackReport> packs;
  LabelSummary labels;
  std::vector<std::string> notices;
  double seconds = 0;
  std::uint64_t samples_packed_now = 0;
  bool interrupted = false;  ///< `stop` was set: finished parts are kept, a rerun resumes
};

/// What would happen.
struct PackImagesPreview {
  SampleList list;
  std::vector<std::string> notices;
  SampleShape sample;      ///< of the first image; whether all have it only packing tells
  std::string first_file;  ///< that image
  std::vector<std::pair<std::string, std::uint64_t>> packs;  ///< folder, rows
  std::vector<ChunkPlan> plans;                              ///< per pack
  std::vector<SpaceNeed> needs;                              ///< per pack
  std::string codec;
  std::uint64_t free_bytes = 0;
};

/// Returns the codec that a spec means; throws usage.
[[nodiscard]] CodecChoice codec_choice(const PackImagesSpec& spec);

/// Gives what there is to say of the labels.
[[nodiscard]] LabelSummary summarize_labels(const SampleList& list);

/// Packs. Throws Error with the code that the command exits with; published parts stay.
PackImagesReport pack_images(const PackImagesSpec& spec, const PackImagesOptions& options);

/// Plans without writing.
[[nodiscard]] PackImagesPreview preview_images(const PackImagesSpec& spec, const PackImagesOptions& options);

}  // namespace chunkhit
