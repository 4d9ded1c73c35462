// A pack to write: which one it is, how it divides into chunks, and where its rows come from.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "chunk/chunk_plan.h"
#include "chunkhit/pack.h"
#include "listing/sample_list.h"
#include "pack/images/sample_order.h"
#include "pack/output_pack.h"
#include "types/sample_shape.h"

namespace chunkhit {

/// The rows of a part: samples of a list, by index, in packing order.
struct PartRows {
  const SampleList* list = nullptr;
  std::vector<std::uint32_t> indices;
  std::shared_ptr<const SampleList> planned;  ///< owns `list` where a plan has its own; else the run does
};

/// A pack to write, and where the rows of its parts come from: the input list, or a plan.
struct PackTask {
  std::string name;  ///< of a split's pack, else empty
  PackIdentity identity;
  std::uint64_t sample_count = 0;
  std::vector<Reject> rejects;  ///< rows that were rejected while listing
  std::function<PartRows(std::uint64_t first, std::uint64_t count)>
      rows;  ///< `count` samples from `first` on
};

/// Throws cannot_write where the folder of a pack holds another one, finished or begun, that `options.force`
/// would not remove; changes nothing.
void check_earlier_pack(const PackImagesSpec& spec, const PackImagesOptions& options, const SampleList& list,
                        const SampleShape& sample, const PackSamples& samples);

/// The chunks of a pack of `sample_count` samples; of images of their own sizes with chunk_samples 0, and
/// chunk_count 0: `spec.own_sizes.part_samples` are known by then.
[[nodiscard]] ChunkPlan plan_pack(const PackImagesSpec& spec, const SampleShape& sample,
                                  std::uint64_t sample_count);

/// Which pack samples of a list make.
[[nodiscard]] PackIdentity image_pack(const PackImagesSpec& spec, const SampleShape& sample,
                                      const SampleList& list, const PackSamples& samples);

/// The pack of samples of a list, which outlives it.
[[nodiscard]] PackTask listed_pack(const PackImagesSpec& spec, const SampleShape& sample,
                                   const SampleList& list, PackSamples samples);

}  // namespace chunkhit
