// What pack_images packs: the list of images, the first one's shape, and the packs that they make.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "chunk/chunk_plan.h"
#include "chunkhit/pack.h"
#include "listing/root_folder.h"
#include "listing/sample_list.h"
#include "pack/images/image_run.h"
#include "pack/images/sample_order.h"
#include "types/sample_shape.h"

namespace chunkhit {

/// The first image that can be packed: its upright size, and the sample that it gives.
struct FirstImage {
  std::string file;
  std::uint64_t bytes = 0;  ///< of the file
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  SampleShape sample;
  bool loses_alpha = false;  ///< it has alpha, and the sample does not
};

/// The input of a run.
struct ImageInput {
  SampleList list;
  FirstImage first;
  std::vector<PackSamples> packs;
  std::vector<std::string> notices;
  LabelSummary labels;
};

/// Looks at the first images of a list and divides it into packs. Throws as pack_images.
[[nodiscard]] ImageInput make_image_input(const ImageRun& run, SampleList list);

/// The names of classes by id, from a pack or a text file: PackImagesSpec::classes; with `are_columns` those
/// of a pack's label columns, where it has them. Throws bad_data.
[[nodiscard]] std::vector<std::string> read_classes(const std::string& path, bool are_columns = false);

/// What a file, or pixels of a shape, would be in the pack; throws ImageError where it would be rejected.
[[nodiscard]] FirstImage probe_file(const PackImagesSpec& spec, const std::string& file, Bytes bytes,
                                    const SampleShape& pixels, std::vector<SampleField> fields);

/// Lists the images, looks at the first ones and divides the list into packs; nothing where the run was
/// stopped meanwhile: a list on stdin may lack its end then. Throws as pack_images.
[[nodiscard]] std::optional<ImageInput> read_image_input(const ImageRun& run);

/// Reads a file of the list into `bytes`, in several tries where the machine cannot read it; throws
/// ImageError where it cannot be packed, try_again.
void load_with_retries(const PackImagesSpec& spec, const RootFolder& root, const SampleList& list,
                       std::size_t index, ByteBuffer& bytes);

/// Fills in part_samples where it is computed: from the sizes of some files of the list.
void count_part_samples(ImageRun& run, const SampleList& list);

/// About how many bytes an image of its own size takes on disk: from the sizes of some files.
[[nodiscard]] std::uint64_t expected_image_bytes(const ImageRun& run, const SampleList& list);

/// The plan with the largest chunks of all packs of a run.
[[nodiscard]] ChunkPlan largest_chunks(const PackImagesSpec& spec, const ImageInput& input);

/// Throws what can be known beforehand of all packs of a run, before anything of one is removed or written.
/// Returns folders of an earlier split of the same list that this one does not make: their images would be in
/// two packs, one for training and one to test with, say. Throws cannot_write where these stay.
[[nodiscard]] std::vector<std::string> check_outputs(const ImageRun& run, const ImageInput& input);

}  // namespace chunkhit
