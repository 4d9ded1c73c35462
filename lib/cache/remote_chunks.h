// Chunks of parts on a server: asked for ahead, and kept on a local disk.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "cache/chunk_set.h"
#include "cache/disk_cache.h"

namespace chunkhit {

struct RemoteChunksSpec {
  std::string cache_dir = {};          ///< empty: nothing is kept on a disk
  std::uint64_t cache_disk_bytes = 0;  ///< as DiskCache
  std::size_t chunks_ahead = 0;        ///< how many may be on their way at a time
};

/// What was fetched.
struct RemoteStats {
  std::uint64_t bytes = 0;        ///< from servers
  std::uint64_t disk_chunks = 0;  ///< from the disk
};

/// Any thread may call anything.
class RemoteChunks {
 public:
  RemoteChunks(const ChunkSet& chunks, const RemoteChunksSpec& spec);
  /// Asks for a chunk that will be fetched soon.
  void read_ahead(std::size_t chunk);
  /// Whether no more chunks are on their way than may be.
  [[nodiscard]] bool can_read_ahead() const;
  /// Forgets what was asked for; a caller that waits for it gets try_again.
  void forget_ahead();
  /// Fills `stored` with a chunk's bytes; their hash is compared where `checks`, or where a disk is used.
  void fetch(std::size_t chunk, MutableBytes stored, bool checks);
  /// As DiskCache.
  void begin_epoch(NextVisit next_visit);
  [[nodiscard]] RemoteStats stats() const;
  void reset_stats();

 private:
  [[nodiscard]] DiskCache::Claim take_ahead(std::size_t chunk);
  [[nodiscard]] bool load(std::size_t chunk, MutableBytes stored);
  [[nodiscard]] DiskCache::Claim wait_for_other(std::size_t chunk);

  const ChunkSet& chunks_;
  RemoteChunksSpec spec_;
  std::optional<DiskCache> disk_;
  std::atomic<std::chrono::steady_clock::time_point> waits_again_{};  // for other processes
  mutable std::mutex mutex_;                                          // guards all below
  std::map<std::size_t, DiskCache::Claim> ahead_;                     // on their way
  RemoteStats stats_;
};

}  // namespace chunkhit
