// Reads of chunks and samples from files and servers: what each cache of chunks does alike.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "cache/chunk_set.h"
#include "cache/prepared_chunks.h"
#include "chunkhit/error.h"
#include "chunkhit/loader.h"

namespace chunkhit {

struct ChunkCacheSpec {
  Cache cache = Cache::none;  ///< not automatic
  CheckHashes check_hashes = CheckHashes::always;
  OnCorrupt on_corrupt = OnCorrupt::fail;
  std::size_t kept_chunks = 0;   ///< up to so many decoded chunks, those stay that nobody has asked for
  std::size_t chunks_ahead = 1;  ///< decoded chunks that may be wanted at a time, as a rule
  /// Cache::none where all parts are raw: chunks take no memory, samples are read one by one.
  bool reads_samples = false;
  PreparedChunksSpec prepared = {};
};

/// What a cache has done. Times in seconds, summed over threads.
struct ChunkCacheStats {
  std::uint64_t fetches = 0;
  std::uint64_t shared_chunks = 0;  ///< chunks that other processes have put into memory
  std::uint64_t stored_bytes = 0;
  std::uint64_t corrupt_chunks = 0;
  double fetch_seconds = 0;
  double decode_seconds = 0;
  PreparedStats prepared;
};

/// Reads chunks and samples, compares their hashes, decodes chunks, and counts. Any thread may call anything.
class ChunkReads {
 public:
  ChunkReads(const ChunkSet& chunks, const ChunkCacheSpec& spec);
  [[nodiscard]] const ChunkSet& chunks() const { return chunks_; }
  [[nodiscard]] PreparedChunks& prepared() const { return *prepared_; }
  /// Whether bytes are compared with their hashes.
  [[nodiscard]] bool checks(const ChunkReader& part) const { return checks_ && part.has_hashes(); }
  [[nodiscard]] bool skips_corrupt() const { return skips_corrupt_; }
  /// Returns where OnCorrupt::skip leaves out what an error is about; else throws the error, with advice.
  void leave_out_or_throw(const Error& error) const;

  /// Reads a chunk's stored bytes.
  void fetch(std::size_t chunk, ChunkSet::Location location, MutableBytes stored) {
    prepared_->read(chunk, stored, checks(chunks_.part(location)));
  }
  /// Gives the stored bytes of a chunk from a server in the memory that they arrived in; else nothing.
  [[nodiscard]] PreparedChunk take(std::size_t chunk, ChunkSet::Location location) {
    return prepared_->take(chunk, checks(chunks_.part(location)));
  }
  /// Decodes a chunk to `memory`, which has ChunkSet::decoded_bytes or more; of images with as many bytes as
  /// they have raw, maybe only those that are wanted.
  void decode(ChunkSet::Location location, Bytes stored, MutableBytes memory,
              std::span<const std::uint64_t> wanted = {}) const;
  /// Fetches a chunk, decodes it as `decode`, and counts it. `scratch` is for its stored bytes.
  void load(std::size_t chunk, ChunkSet::Location location, MutableBytes memory, ByteBuffer& scratch,
            std::span<const std::uint64_t> wanted = {});
  /// Reads samples of a raw chunk from the one with index `first` on, whose bytes begin at `offset` of the
  /// chunk. Returns whether they are whole, or throws where damage is not skipped.
  [[nodiscard]] bool read_samples(std::size_t chunk, std::uint64_t first, std::uint64_t offset,
                                  MutableBytes out);

  using Clock = std::chrono::steady_clock;
  /// Counts a chunk whose fetching began and ended at these times, and whose decoding ends now.
  void count_fetch(ChunkSet::Location location, Clock::time_point begin, Clock::time_point fetched);
  void count_shared();
  /// Counts a chunk once, however often samples of it are found damaged.
  void count_damaged(std::size_t chunk);
  [[nodiscard]] ChunkCacheStats stats() const;
  void reset_stats();

 private:
  void decode_matrices(ChunkSet::Location location, Bytes stored, MutableBytes memory) const;

  const ChunkSet& chunks_;
  const bool checks_;
  const bool skips_corrupt_;
  std::unique_ptr<PreparedChunks> prepared_;
  mutable std::mutex mutex_;  // guards the two below
  ChunkCacheStats stats_;
  std::vector<bool> is_damaged_;  // chunks that were counted as such
};

}  // namespace chunkhit
