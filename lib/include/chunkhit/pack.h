// Packing: image files or user-item ratings become packs, which loaders read. Library chunkhit::pack.
#pragma once

#include <chunkhit/error.h>
#include <chunkhit/image_spec.h>
#include <chunkhit/pack_info.h>
#include <chunkhit/sparse_spec.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace chunkhit {

/// Effect of a bad image or line: it is skipped and counted, or fails the run.
enum class OnError { skip, fail };

/// Maximum skipped inputs: `count` if not 0, else `share` of all (at least one).
struct ErrorLimit {
  double share = 0.01;
  std::uint64_t count = 0;
};

/// Progress of pack_images.
struct PackProgress {
  enum class Phase { listing, packing, finishing };
  Phase phase = Phase::listing;
  std::string pack;             ///< folder of the pack that is written
  std::uint64_t rows_done = 0;  ///< in all packs, including finished parts of an earlier run
  std::uint64_t rows_total = 0;
  std::uint64_t rows_skipped = 0;  ///< done by an earlier run
  std::uint64_t rejected = 0;
};

/// How pack_images runs; not recorded, except in run.json.
struct PackImagesOptions {
  std::string root;  ///< folder of the images, or of tars of them; empty: the folder of spec.labels
  std::vector<std::string>
      inputs;                 ///< in place of root: tars, plain or compressed, "-" for stdin; or an IDX file
  std::string output;         ///< folder of the pack, or of the packs of a split
  std::uint32_t threads = 0;  ///< worker threads, as many as fit memory_bytes; 0: all available CPUs
  /// Memory limit; the output does not depend on it. glibc keeps freed buffers beyond it, unless the program
  /// calls mallopt(M_MMAP_THRESHOLD, 1 << 20), as the commands do.
  std::uint64_t memory_bytes = 2ull << 30;
  OnError on_error = OnError::skip;  ///< rejects are listed in rejects.csv
  ErrorLimit max_errors{};           ///< rejected rows
  bool force = false;                ///< overwrite the pack in `output`
  bool trust_inputs = false;         ///< resume without checking whether inputs changed
  std::string sheet{};       ///< PNG that preview_images writes: some images before and after; empty: none
  std::string command_line;  ///< for run.json
  std::function<void(const PackProgress&)> on_progress;  ///< called by one thread at a time, by any thread
  const std::atomic<bool>* stop = nullptr;               ///< set it to stop after the samples in hand
};

/// Rejects of one kind.
struct RejectCount {
  std::uint64_t count = 0;
  std::string first;     ///< reason of the first one
  bool are_same = true;  ///< all have the same reason, word by word
};

/// Outcome of one pack of images.
struct PackReport {
  std::string path;
  std::uint64_t rows = 0;
  std::uint64_t samples = 0;
  std::uint64_t rejected = 0;
  std::uint64_t warned = 0;  ///< samples packed with warnings
  std::uint64_t parts = 0;
  std::uint64_t parts_kept = 0;  ///< finished by an earlier run
  std::uint64_t bytes = 0;       ///< bytes of all parts
  std::uint64_t raw_bytes = 0;   ///< bytes of all samples
  bool already_finished = false;
  bool repaired = false;  ///< finished before, but incomplete: what was missing was written again
  std::map<std::string, RejectCount> reasons;  ///< rejects by their kind (schemas/manifest.md)
  std::vector<std::string> notices;            ///< what happened to files that an earlier run packed
};

/// Labels of a list of images.
struct LabelSummary {
  LabelKind kind = LabelKind::class_id;
  std::vector<std::string> columns;
  std::vector<std::string> classes;  ///< names by id; empty if the list has ids
  std::uint64_t class_count = 0;     ///< different ids of the samples
  bool is_detected = false;          ///< whether `label_type` would have made another kind of them
};

/// Outcome of pack_images.
struct PackImagesReport {
  std::vector<PackReport> packs;
  LabelSummary labels;
  std::vector<std::string> notices;
  double seconds = 0;
  std::uint64_t samples_packed_now = 0;
  bool interrupted = false;  ///< `stop` was set: finished parts are kept, the same call resumes
};

/// Packs a folder of images into `options.output`, or into a subfolder for each pack of a split. The same
/// call resumes an interrupted run and does nothing for a finished pack.
///
/// Throws Error: usage if spec or options make no sense; bad_data for inputs that cannot be used;
/// too_many_rejects; cannot_write if the disk is full or `output` holds something else (another spec, unknown
/// files); try_again if memory, threads or storage fail. A message names a field in backticks: "`split`: the
/// shares add up to 0.9, expected 1". Finished parts stay.
CHUNKHIT_API PackImagesReport pack_images(const PackImagesSpec& spec, const PackImagesOptions& options);

/// Pack of images as it would be written.
struct PackImagesPlan {
  std::string path;
  std::uint64_t rows = 0;
  std::uint64_t parts = 0;
  std::uint64_t chunks = 0;
  std::uint64_t chunk_samples = 0;
  std::uint64_t chunk_bytes = 0;  ///< uncompressed
  std::string chunk_reason;       ///< why chunks have this size
  std::uint64_t raw_bytes = 0;
  std::uint64_t needed_bytes = 0;  ///< disk space; a minimum if chunks are compressed
  bool is_compressed = false;
  CachePrediction default_cache;  ///< as in ImagesInfo
  CachePrediction advised_cache;
};

/// Image of a preview's sheet.
struct SheetImage {
  std::string file;
  std::uint32_t width = 0;  ///< of the file, before EXIF turns it, pixels
  std::uint32_t height = 0;
  int orientation = 1;             ///< of EXIF
  std::uint32_t sample_width = 0;  ///< of its sample, pixels
  std::uint32_t sample_height = 0;
  std::string reject;  ///< reason why it would be rejected; empty if it would be packed
};

/// What pack_images would write.
struct PackImagesPreview {
  std::uint64_t rows = 0;
  std::uint64_t rejected = 0;         ///< while listing; images are not opened yet, except the first
  std::vector<std::string> findings;  ///< the worst three: rejects, classes, enlarged images
  std::vector<std::string> notices;
  LabelSummary labels;
  std::uint32_t height = 0;  ///< shape of the samples, as the first image gives it
  std::uint32_t width = 0;
  std::uint32_t channels = 0;
  std::string first_file;
  std::string codec;
  std::vector<PackImagesPlan> packs;
  std::uint64_t free_bytes = 0;     ///< free disk space of the output
  std::vector<SheetImage> sheet{};  ///< images of `options.sheet`, numbered from 1 there
};

/// Plans without writing anything but `options.sheet`. Throws as pack_images.
[[nodiscard]] CHUNKHIT_API PackImagesPreview preview_images(const PackImagesSpec& spec,
                                                            const PackImagesOptions& options);

/// Outcome of plan_images.
struct PlanReport {
  std::string path;  ///< folder of the plan
  std::uint64_t tasks = 0;
  std::uint64_t parts = 0;  ///< of all packs
  std::uint64_t rows = 0;
  std::uint64_t rejected = 0;  ///< while listing
  std::uint64_t bytes = 0;     ///< of the plan's files
  LabelSummary labels;
  std::vector<std::string> notices;
  double seconds = 0;
  bool already_finished = false;  ///< all packs are finished: there is nothing to plan
  bool interrupted = false;
};

/// Plans packs that any number of processes, on any number of machines, write together: freezes the list, its
/// order and all sizes in `options.output`, for run_plan. `tasks` is lowered to the number of parts. The same
/// call writes the same plan again. Throws as pack_images, and cannot_write if `output` holds the plan of
/// other packs.
CHUNKHIT_API PlanReport plan_images(const PackImagesSpec& spec, const PackImagesOptions& options,
                                    std::uint64_t tasks);

/// How merge_packs runs.
struct MergeOptions {
  std::string output;  ///< folder of the merged pack; named among `packs`, they are appended to it
  std::vector<std::string> packs;
  std::string command_line;                 ///< for run.json
  const std::atomic<bool>* stop = nullptr;  ///< set it to stop while files are copied
};

/// Outcome of merge_packs.
struct MergeReport {
  std::string path;
  std::uint64_t packs = 0;  ///< that were merged, those of merged packs one by one
  std::uint64_t rows = 0;   ///< input rows; users
  std::uint64_t samples = 0;
  std::uint64_t parts = 0;
  std::uint64_t parts_linked = 0;  ///< by this call
  std::uint64_t parts_copied = 0;  ///< by this call, where the file system has no links
  std::uint64_t bytes = 0;         ///< bytes of all parts
  std::vector<std::string> notices;
  double seconds = 0;
  bool already_finished = false;  ///< `output` held this pack
  bool interrupted = false;       ///< `stop` was set: the same call resumes
};

/// Merges finished packs into one by metadata alone: their parts are hard-linked, or else copied, and a
/// manifest lists them all. Classes are joined by name: ids of the first pack stay, names that it lacks
/// follow, sorted. Ratings are merged where all packs have the same items and no user is in two of them.
/// `output` is what it was until its new manifest is published; the same call resumes, and does nothing for
/// a finished merge.
///
/// Throws Error: usage; bad_data if a pack is unfinished, damaged, named twice, or differs from the first one
/// in kind, container, shape, layout, labels, items or values; cannot_write if `output` holds something else;
/// try_again.
CHUNKHIT_API MergeReport merge_packs(const MergeOptions& options);

/// How run_plan runs.
struct RunPlanOptions {
  std::string folder;  ///< output of plan_images
  std::vector<std::uint64_t>
      tasks;         ///< the parts of these tasks alone; empty: all that is missing, and finish
  std::string root;  ///< folder of the inputs where it is another one here; empty: the plan's
  /// Folders of fields that are other ones here, "NAME=FOLDER"; the FOLDER alone where there is one field.
  std::vector<std::string> pair;
  std::uint32_t threads = 0;  ///< as in PackImagesOptions
  std::uint64_t memory_bytes = 2ull << 30;
  std::function<void(const PackProgress&)> on_progress;
  const std::atomic<bool>* stop = nullptr;
};

/// Outcome of run_plan.
struct RunPlanReport {
  std::vector<PackReport> packs;  ///< of the parts of this call's tasks
  std::vector<std::string> notices;
  std::uint64_t samples_packed_now = 0;
  double seconds = 0;
  bool finished = false;     ///< the packs are whole, and the plan is removed
  bool interrupted = false;  ///< `stop` was set
};

/// Packs the parts of some tasks of a plan, or all that is missing and finishes the packs, whose bytes are
/// those that pack_images writes. Any number of calls may run at once, also of the same task.
///
/// Throws Error: usage for an unknown task, or memory that cannot hold an image; bad_data if the
/// plan is damaged, gone, or of another version of chunkhit; too_many_rejects; cannot_write;
/// try_again if the images are not there or the machine cannot read them: nothing is published then that
/// another machine would not have written.
CHUNKHIT_API RunPlanReport run_plan(const RunPlanOptions& options);

/// State of a plan's packs.
struct PlanStatus {
  std::string path;
  std::uint64_t rows = 0;
  std::uint64_t tasks = 0;
  std::uint64_t parts = 0;
  std::uint64_t parts_done = 0;
  std::vector<std::uint64_t> missing_tasks;  ///< tasks with missing parts, ascending
  std::uint64_t rejected = 0;                ///< while listing and in finished parts
  std::uint64_t max_rejected = 0;
  std::vector<std::string> begun;  ///< files being written, or left by a killed task, with their writers
};

/// Whether a folder holds a plan.
[[nodiscard]] CHUNKHIT_API bool has_plan(const std::string& folder);

/// Reads how far the packs of a plan are. Throws bad_data if the folder holds no plan.
[[nodiscard]] CHUNKHIT_API PlanStatus read_plan_status(const std::string& folder);

/// Formats PlanStatus as one JSON object: the field names, and `finished`: false.
[[nodiscard]] CHUNKHIT_API std::string plan_status_json(const PlanStatus& status);

/// Progress of pack_sparse.
struct PackSparseProgress {
  enum class Phase { reading, sorting, packing, finishing };
  Phase phase = Phase::reading;
  std::string pack;               ///< folder of the pack that is written, while packing
  std::uint64_t bytes_done = 0;   ///< input bytes
  std::uint64_t bytes_total = 0;  ///< 0: not known
  std::uint64_t rows_done = 0;    ///< in all packs
  std::uint64_t rows_total = 0;
  std::uint64_t bad_lines = 0;
};

/// How pack_sparse runs; not recorded, except in run.json.
struct PackSparseOptions {
  /// Files, folders of packs, or "-" for stdin; SplitKind::given: train, validation, test.
  std::vector<std::string> inputs;
  std::string output;         ///< folder of the pack, or of the packs of a split
  std::uint32_t threads = 0;  ///< worker threads; 0: all available CPUs, or as many as fit memory_bytes
  std::uint64_t memory_bytes = 2ull << 30;  ///< memory limit: ratings spill to disk, ids must fit
  OnError on_error = OnError::fail;
  ErrorLimit max_errors{};                                     ///< bad lines
  bool force = false;                                          ///< overwrite the pack in `output`
  std::string command_line;                                    ///< for run.json
  std::function<void(const PackSparseProgress&)> on_progress;  ///< called by one thread at a time
  const std::atomic<bool>* stop = nullptr;  ///< set it to stop soon; nothing unfinished is kept
};

/// Outcome of one pack of matrices.
struct MatrixPackReport {
  std::string path;
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  std::vector<PackMatrix> matrices;
  std::uint64_t parts = 0;
  std::uint64_t chunk_rows = 0;
  std::uint64_t bytes = 0;  ///< bytes of all parts
  bool already_finished = false;
  std::uint64_t parts_kept = 0;  ///< finished by an earlier run
};

/// Outcome of pack_sparse.
struct PackSparseReport {
  std::vector<MatrixPackReport> packs;
  RatingStats stats;
  std::vector<std::string> bad_lines;  ///< the first ones: "ratings.csv:7:3: value: expected a number, …"
  StoredValues values;
  std::vector<std::string> notices;
  std::string codec;
  std::uint64_t items_counted = 0;  ///< by count_items
  std::uint64_t input_bytes = 0;    ///< texts after decompression, matrices as stored
  double seconds = 0;
  double read_seconds = 0;
  bool interrupted = false;  ///< `stop` was set: a rerun starts over
};

/// Packs user-item ratings into `options.output`, or into the subfolders train, validation and test of it.
/// Throws as pack_images.
CHUNKHIT_API PackSparseReport pack_sparse(const PackSparseSpec& spec, const PackSparseOptions& options);

/// Counts items for packs of parts of these inputs: writes the items.csv that packs of all inputs would have
/// to the file `options.output`, which PackSparseSpec::reuse_ids of each part takes; behind them items that
/// training lacks, without a column. Rules and split apply;
/// `items_counted` and the type of the values are reported. Inputs that all are such lists are added up, with
/// `id_order` and `min_item`; their values are not known. The rest of the spec has no effect. Throws as
/// pack_sparse, and usage for reuse_ids and for splits that see all users at once.
CHUNKHIT_API PackSparseReport count_items(const PackSparseSpec& spec, const PackSparseOptions& options);

/// Reads the inputs and plans; writes nothing. Without options.output no earlier pack is compared. Throws as
/// pack_sparse.
[[nodiscard]] CHUNKHIT_API PackSparseReport preview_sparse(const PackSparseSpec& spec,
                                                           const PackSparseOptions& options);

}  // namespace chunkhit
