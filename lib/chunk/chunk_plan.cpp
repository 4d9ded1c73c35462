#include "chunk/chunk_plan.h"

#include <algorithm>

#include "chunkhit/error.h"

namespace chunkhit {
namespace {

constexpr std::uint64_t kMebibyte = 1 << 20;
constexpr std::uint64_t kLargestDefaultCache = 8 * kMebibyte;  // HDF5 2.0; 1 MiB before
constexpr std::uint64_t kMostHdf5ChunkBytes = 0xffffffff;      // HDF5's limit for one chunk

std::uint64_t divide_up(std::uint64_t value, std::uint64_t by) { return (value + by - 1) / by; }

std::uint64_t computed_chunk_samples(const ChunkPlanSpec& spec, std::string& reason) {
  if (spec.chunk_samples > 0) {
    reason = "as --chunk-samples says";
    return spec.chunk_samples;
  }
  if (spec.chunk_bytes > 0) {
    reason = "as many as --chunk-bytes holds";
    return std::max<std::uint64_t>(1, spec.chunk_bytes / spec.sample_bytes);
  }
  if (spec.hdf5 && !spec.compressed) {
    reason = "above every default chunk cache, so that reading one sample fetches exact bytes";
    return kLargestDefaultCache / spec.sample_bytes + 1;
  }
  reason = spec.hdf5 ? "within HDF5's default chunk cache of 1 MiB"
                     : "1 MiB of samples, decoded inside a core's cache";
  return std::max<std::uint64_t>(1, kMebibyte / spec.sample_bytes);
}

}  // namespace

ChunkPlan plan_chunks(const ChunkPlanSpec& spec) {
  ChunkPlan plan;
  plan.compressed = spec.compressed;
  plan.chunk_samples = computed_chunk_samples(spec, plan.reason);
  // A chunk is never larger than the whole set, nor than a part.
  plan.chunk_samples = std::min(plan.chunk_samples, std::max<std::uint64_t>(1, spec.sample_count));
  plan.chunk_samples =
      std::min(plan.chunk_samples, std::max<std::uint64_t>(1, spec.part_bytes / spec.sample_bytes));
  plan.chunk_bytes = plan.chunk_samples * spec.sample_bytes;
  if (plan.chunk_bytes > kMostHdf5ChunkBytes)
    throw Error(ErrorCode::usage, "chunk-samples: a chunk of " + std::to_string(plan.chunk_bytes) +
                                      " bytes, expected at most " + std::to_string(kMostHdf5ChunkBytes));
  const std::uint64_t chunks_a_part = std::max<std::uint64_t>(1, spec.part_bytes / plan.chunk_bytes);
  plan.part_samples = chunks_a_part * plan.chunk_samples;
  plan.part_count = divide_up(spec.sample_count, plan.part_samples);
  plan.chunk_count = divide_up(spec.sample_count, plan.chunk_samples);
  return plan;
}

}  // namespace chunkhit
