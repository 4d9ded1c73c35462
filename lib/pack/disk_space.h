// Predicts how much disk a pack takes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "chunk/chunk_plan.h"
#include "store/part.h"
#include "types/sample_shape.h"

namespace chunkhit {

/// What the parts of a pack take on disk.
struct SpaceNeed {
  std::uint64_t bytes = 0;
  bool is_minimum = false;  ///< compressed: how small nobody knows before, but not smaller
};

/// Returns what the last `sample_count` samples of a plan need, the padding of the last chunk and each part's
/// metadata included; of images of their own sizes nothing is known before.
[[nodiscard]] SpaceNeed needed_space(const ChunkPlan& plan, const SampleShape& sample,
                                     const Container& container, std::uint64_t sample_count);

/// Returns what bytes need that are written as they are, or compressed.
[[nodiscard]] SpaceNeed needed_space(std::uint64_t raw_bytes, bool compressed);

/// About what share of their raw bytes photographs take by a codec; drawings take less.
[[nodiscard]] double photograph_share(std::string_view codec);

/// Says why the free bytes cannot be enough ("needs about 31.1 MB, 12.0 MB are free"); empty where they may
/// be.
[[nodiscard]] std::string space_error(const SpaceNeed& need, std::uint64_t free_bytes);

/// Writes a need: "about 31.1 MB", "at least 3.1 MB".
[[nodiscard]] std::string space_text(const SpaceNeed& need);

}  // namespace chunkhit
