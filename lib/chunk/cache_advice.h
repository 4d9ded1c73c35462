// HDF5's chunk cache: what suits a part, and how often it will hit.
#pragma once

#include <cstdint>

#include "chunk/chunk_plan.h"

namespace chunkhit {

/// HDF5's three chunk-cache settings (h5py.File(..., rdcc_nbytes=, rdcc_nslots=, rdcc_w0=)); recorded in HDF5
/// parts where `rdcc_nbytes` is not 0.
struct CacheAdvice {
  std::uint64_t rdcc_nbytes = 0;
  std::uint64_t rdcc_nslots = 0;
  double rdcc_w0 = 0.75;
};

/// What HDF5 takes by default (before 2.0).
inline constexpr CacheAdvice kDefaultCache{1 << 20, 521, 0.75};

/// Chunks that a windowed shuffle keeps at hand.
inline constexpr std::uint64_t kWindowChunks = 64;

/// Advises for reading one part of `chunk_count` chunks through the HDF5 library with a window of
/// kWindowChunks chunks.
[[nodiscard]] CacheAdvice advise_cache(const ChunkPlan& plan, std::uint64_t chunk_count);

/// The share of single-sample reads that find their chunk in the cache, 0..1.
struct HitRates {
  double sequential = 0;
  double windowed = 0;  ///< samples permuted inside windows of kWindowChunks chunks
  double random = 0;    ///< any sample next
  bool bypass = false;  ///< chunks are not cached but read exactly: no hit, but no wasted byte either
};

/// Predicts the hit rates of a cache of `cache_bytes` over `chunk_count` chunks, all slots being enough.
[[nodiscard]] HitRates predict_hit_rates(const ChunkPlan& plan, std::uint64_t chunk_count,
                                         std::uint64_t cache_bytes);

}  // namespace chunkhit
