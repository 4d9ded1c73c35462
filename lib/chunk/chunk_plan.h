// Sizes of chunks and parts; advice for HDF5's chunk cache, and how often it will hit.
#pragma once

#include <cstdint>
#include <string>

#include "chunkhit/pack_info.h"

namespace chunkhit {

/// What the sizes of chunks and parts are computed from.
struct ChunkPlanSpec {
  std::uint64_t sample_bytes = 1;
  std::uint64_t sample_count = 0;
  bool hdf5 = true;  ///< the container's rules: HDF5's chunk cache, or none for shards
  bool compressed = false;
  std::uint64_t max_chunk_bytes = 1ull << 31;  ///< the container's limit, raw
  std::uint64_t chunk_samples = 0;             ///< 0: computed
  std::uint64_t chunk_bytes = 0;               ///< at most this many raw bytes a chunk; 0: computed
  std::uint64_t part_bytes = 1ull << 30;       ///< at most this many raw bytes a part, at least one chunk
};

/// The sizes chosen, and why.
struct ChunkPlan {
  std::uint64_t chunk_samples = 1;  ///< 0: chunks are cut by their stored bytes
  std::uint64_t chunk_bytes = 1;    ///< raw
  std::uint64_t part_samples = 1;   ///< a multiple of chunk_samples
  std::uint64_t part_count = 0;
  std::uint64_t chunk_count = 0;  ///< in all parts
  bool compressed = false;
  std::string reason;  ///< one sentence
  /// Chunks of so many samples; 0 where they are not known.
  [[nodiscard]] std::uint64_t chunks_of(std::uint64_t samples) const {
    return chunk_samples == 0 ? 0 : (samples + chunk_samples - 1) / chunk_samples;
  }
};

/// Plans: compressed chunks of at most 1,048,576 raw bytes, so that one fits HDF5's default chunk cache;
/// uncompressed HDF5 chunks just above 8 MiB, so that a read of one sample bypasses every default cache and
/// fetches exact bytes; raw shard chunks of 1 MiB, the unit that is hashed. HDF5 chunks of computed size are
/// balanced, so that the last one is nearly full: uncompressed ones may so become twice as large. Throws
/// usage for a chunk above the container's limit.
[[nodiscard]] ChunkPlan plan_chunks(const ChunkPlanSpec& spec);

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

/// Predicts the hit rates of single-sample reads over `chunk_count` chunks, all slots being enough.
[[nodiscard]] CachePrediction predict_cache(const ChunkPlan& plan, std::uint64_t chunk_count,
                                            const CacheAdvice& cache);

}  // namespace chunkhit
