// How the bytes of --memory-bytes are divided.
#pragma once

#include <cstdint>

#include "chunk/chunk_plan.h"
#include "chunkhit/pack.h"
#include "types/sample_shape.h"

namespace chunkhit {

/// Shares of --memory-bytes; what is packed does not depend on them.
struct MemoryPlan {
  std::uint32_t threads = 1;
  std::uint32_t parts = 1;         ///< packed at once
  std::uint64_t buffer_bytes = 0;  ///< chunks in work, of all these parts
  std::uint64_t kept_bytes = 0;    ///< buffers that each thread may keep between images
  /// Shared by the images that need more; at least one of max_decode_bytes, unless that is the default.
  std::uint64_t decode_bytes = 0;
};

/// Throws usage where one image of spec.max_decode_bytes needs more memory than there is, whatever the chunks
/// are: before inputs are read, which may take long.
void check_memory(const PackImagesSpec& spec, const PackImagesOptions& options);

/// Divides options.memory_bytes, of which `held_bytes` are taken, for packs of such samples whose largest
/// chunks are `chunk`.
/// Where options.threads is 0 there are as many as there are CPUs and as fit. Throws usage, with the number
/// that is enough, where one image of spec.max_decode_bytes does not fit beside the rest.
[[nodiscard]] MemoryPlan plan_memory(const PackImagesSpec& spec, const PackImagesOptions& options,
                                     const SampleShape& sample, const ChunkPlan& chunk,
                                     std::uint64_t held_bytes);

}  // namespace chunkhit
