#include "chunk/chunk_plan.h"

#include <algorithm>

#include "base/throw_error.h"
#include "base/words.h"

namespace chunkhit {
namespace {

constexpr std::uint64_t kMebibyte = 1 << 20;
constexpr std::uint64_t kLargestDefaultCache = 8 * kMebibyte;  // HDF5 2.0; 1 MiB before

std::uint64_t divide_up(std::uint64_t value, std::uint64_t by) { return (value + by - 1) / by; }

bool bypasses_cache(const ChunkPlanSpec& spec) { return spec.hdf5 && !spec.compressed; }

/// HDF5 stores the last chunk whole, so all chunks get about the same number of samples. Where a chunk must
/// exceed the caches there are rather fewer chunks, else rather more.
std::uint64_t balanced(const ChunkPlanSpec& spec, std::uint64_t chunk_samples) {
  if (!spec.hdf5 || spec.sample_count <= chunk_samples) return chunk_samples;
  const std::uint64_t chunks =
      bypasses_cache(spec) ? spec.sample_count / chunk_samples : divide_up(spec.sample_count, chunk_samples);
  return divide_up(spec.sample_count, chunks);
}

std::uint64_t computed_chunk_samples(const ChunkPlanSpec& spec, std::string& reason) {
  if (spec.chunk_samples > 0) {
    reason = "as `chunk_samples` says";
    return spec.chunk_samples;
  }
  if (spec.chunk_bytes > 0) {
    reason = "as many as `chunk_bytes` holds";
    return std::max<std::uint64_t>(1, spec.chunk_bytes / spec.sample_bytes);
  }
  if (bypasses_cache(spec)) {
    reason = "above every default chunk cache, so that reading one sample fetches exact bytes";
    return balanced(spec, kLargestDefaultCache / spec.sample_bytes + 1);
  }
  reason = spec.hdf5 ? "within HDF5's default chunk cache of 1 MiB"
                     : "1 MiB of samples, decoded inside a core's cache";
  const std::uint64_t fitting = kMebibyte / spec.sample_bytes;
  if (fitting > 0) return balanced(spec, fitting);
  reason = "one sample, which is over 1 MiB";
  return 1;
}

/// A chunk is never larger than a part, nor than the whole set.
void limit_chunk_samples(const ChunkPlanSpec& spec, ChunkPlan& plan) {
  const std::uint64_t part = std::max<std::uint64_t>(1, spec.part_bytes / spec.sample_bytes);
  const std::uint64_t all = std::max<std::uint64_t>(1, spec.sample_count);
  if (plan.chunk_samples > part) plan.reason = "as many as `part_bytes` holds";
  if (plan.chunk_samples > std::min(part, all) && all <= part) plan.reason = "all samples in one chunk";
  plan.chunk_samples = std::min({plan.chunk_samples, part, all});
}

}  // namespace

ChunkPlan plan_chunks(const ChunkPlanSpec& spec) {
  ChunkPlan plan;
  plan.compressed = spec.compressed;
  plan.chunk_samples = computed_chunk_samples(spec, plan.reason);
  limit_chunk_samples(spec, plan);
  plan.chunk_bytes = plan.chunk_samples * spec.sample_bytes;
  if (plan.chunk_bytes > spec.max_chunk_bytes)
    throw_usage("`chunk_samples`: a chunk of " + count_text(plan.chunk_samples, "sample") + " has " +
                std::to_string(plan.chunk_bytes) + " bytes, expected at most " +
                std::to_string(spec.max_chunk_bytes));
  const std::uint64_t chunks_a_part = std::max<std::uint64_t>(1, spec.part_bytes / plan.chunk_bytes);
  plan.part_samples = chunks_a_part * plan.chunk_samples;
  plan.part_count = divide_up(spec.sample_count, plan.part_samples);
  plan.chunk_count = divide_up(spec.sample_count, plan.chunk_samples);
  return plan;
}

CacheAdvice advise_cache(const ChunkPlan& plan, std::uint64_t chunk_count) {
  // Uncompressed chunks above the cache bypass it; a cache that holds them would copy whole chunks for one
  // sample.
  if (!plan.compressed && plan.chunk_bytes > kDefaultCache.rdcc_nbytes) return kDefaultCache;
  // With as many slots as chunks no two chunks share one.
  const std::uint64_t window = std::min(std::max<std::uint64_t>(1, chunk_count), kWindowChunks);
  return {std::max(kDefaultCache.rdcc_nbytes, window * plan.chunk_bytes),
          std::max(kDefaultCache.rdcc_nslots, chunk_count), 0.75};
}

CachePrediction predict_cache(const ChunkPlan& plan, std::uint64_t chunk_count, const CacheAdvice& cache) {
  CachePrediction rates{cache.rdcc_nbytes, cache.rdcc_nslots, cache.rdcc_w0, 0, 0, 0, false};
  const std::uint64_t cached = cache.rdcc_nbytes / plan.chunk_bytes;
  rates.bypass = cached == 0 && !plan.compressed;
  if (cached == 0 || chunk_count == 0) return rates;
  const double first_touch = 1.0 / static_cast<double>(plan.chunk_samples);
  const std::uint64_t window = std::min(kWindowChunks, chunk_count);
  rates.sequential = 1.0 - first_touch;
  const auto share = [&](std::uint64_t of) {
    const double kept = std::min(1.0, static_cast<double>(cached) / static_cast<double>(of));
    return std::min(kept, 1.0 - first_touch);
  };
  rates.windowed = share(window);
  rates.random = share(chunk_count);
  return rates;
}

}  // namespace chunkhit
