#include "chunk/cache_advice.h"

#include <algorithm>

namespace chunkhit {

CacheAdvice advise_cache(const ChunkPlan& plan, std::uint64_t chunk_count) {
  // Uncompressed chunks above the cache bypass it; a cache that holds them would copy whole chunks for one
  // sample.
  if (!plan.compressed && plan.chunk_bytes > kDefaultCache.rdcc_nbytes) return kDefaultCache;
  // With as many slots as chunks no two chunks share one.
  const std::uint64_t window = std::min(std::max<std::uint64_t>(1, chunk_count), kWindowChunks);
  return {std::max(kDefaultCache.rdcc_nbytes, window * plan.chunk_bytes),
          std::max(kDefaultCache.rdcc_nslots, chunk_count), 0.75};
}

HitRates predict_hit_rates(const ChunkPlan& plan, std::uint64_t chunk_count, std::uint64_t cache_bytes) {
  HitRates rates;
  const std::uint64_t cached = cache_bytes / plan.chunk_bytes;
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
