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
#include <utility>

#include "base/bytes.h"
#include "base/remote/http_client.h"
#include "cache/chunk_buffers.h"
#include "cache/chunk_set.h"
#include "cache/disk_cache.h"

namespace chunkhit {

struct RemoteChunksSpec {
  std::string cache_dir = {};          ///< empty: nothing is kept on a disk
  std::uint64_t cache_disk_bytes = 0;  ///< as DiskCache
  std::size_t chunks_ahead = 0;        ///< how many may be on their way before they are fetched
  std::size_t kept_chunks = 0;         ///< how many stay in the memory that they arrived in, as a rule
};

/// What was fetched.
struct RemoteStats {
  std::uint64_t bytes = 0;            ///< from servers
  std::uint64_t disk_chunks = 0;      ///< from the disk
  std::uint64_t chunks_not_kept = 0;  ///< there, for lack of room
  std::uint64_t max_disk_bytes = 0;
  std::string no_disk;  ///< why cache_dir is not used
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
  /// Memory for a chunk's stored bytes; goes back at its end.
  class Buffer {
   public:
    Buffer() = default;
    Buffer(RemoteChunks& owner, std::uint8_t* data, std::size_t bytes)
        : owner_(&owner), data_(data), bytes_(bytes) {}
    Buffer(Buffer&& other) noexcept { *this = std::move(other); }
    Buffer& operator=(Buffer&& other) noexcept {
      std::swap(owner_, other.owner_);
      std::swap(data_, other.data_);
      std::swap(bytes_, other.bytes_);
      std::swap(transfer_, other.transfer_);
      return *this;
    }
    ~Buffer();
    [[nodiscard]] MutableBytes bytes() const { return {data_, bytes_}; }
    /// Leaves the memory to the caller, who gives it back by `give_back`.
    [[nodiscard]] std::uint8_t* release();

   private:
    friend class RemoteChunks;
    RemoteChunks* owner_ = nullptr;
    std::uint8_t* data_ = nullptr;
    std::size_t bytes_ = 0;
    std::shared_ptr<Transfer> transfer_;  // that fills it
  };
  /// Gives a chunk's stored bytes; their hash is compared where `checks`, or where a disk is used.
  [[nodiscard]] Buffer fetch(std::size_t chunk, bool checks);
  void give_back(std::uint8_t* memory);
  /// As DiskCache.
  void begin_epoch(NextVisit next_visit);
  [[nodiscard]] RemoteStats stats() const;
  void reset_stats();

 private:
  /// A chunk that was asked for, or is being fetched.
  struct Asked {
    DiskCache::Claim claim;
    Buffer stored;
    bool is_fetched = false;
  };
  [[nodiscard]] Buffer take_memory(std::size_t chunk);
  [[nodiscard]] Asked& begin(std::size_t chunk);
  [[nodiscard]] Buffer end(std::size_t chunk);
  void ask(std::size_t chunk, Asked& asked);
  [[nodiscard]] bool find_on_disk(std::size_t chunk, Asked& asked);
  void receive(std::size_t chunk, Asked& asked, bool checks);
  [[nodiscard]] bool load(std::size_t chunk, MutableBytes stored);
  [[nodiscard]] DiskCache::Claim wait_for_other(std::size_t chunk);

  const ChunkSet& chunks_;
  RemoteChunksSpec spec_;
  std::optional<DiskCache> disk_;
  std::string no_disk_;                                               ///< as RemoteStats
  std::atomic<std::chrono::steady_clock::time_point> waits_again_{};  // for other processes
  std::mutex memory_mutex_;                                           // guards memory_; taken last
  ChunkBuffers memory_;
  mutable std::mutex mutex_;  // guards all below, but not what a fetching thread does to its Asked
  std::map<std::size_t, Asked> asked_;
  std::size_t fetched_count_ = 0;  // of asked_
  RemoteStats stats_;
};

}  // namespace chunkhit
