// Stored bytes of a source's chunks: asked for ahead, taken, given back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "cache/chunk_set.h"
#include "cache/disk_cache.h"

namespace chunkhit {

class Transfer;

struct PreparedChunksSpec {
  std::string cache_dir = {};          ///< folder of a DiskCache; empty: nothing is kept on a disk
  std::uint64_t cache_disk_bytes = 0;  ///< as DiskCache
  std::size_t max_asked = 0;           ///< as max_asked_chunks
  std::size_t kept_chunks = 0;         ///< how many stay in the memory that they arrived in, as a rule
};

struct PreparedStats {
  std::uint64_t remote_bytes = 0;  ///< bytes from servers
  std::uint64_t disk_chunks = 0;   ///< chunks from the disk
  std::vector<std::string> notices;
};

/// How many chunks are asked for ahead, in a part of the memory; 0 where reading them when they are needed is
/// as fast. Chunks that are asked for come whole, as only these have a hash.
[[nodiscard]] std::size_t max_asked_chunks(const ChunkSet& chunks, std::uint64_t memory);

/// Reads local files when their chunks are needed; `prepare_chunks` gives one that asks servers, too. Any
/// thread may call anything.
class PreparedChunks {
 public:
  explicit PreparedChunks(const ChunkSet& chunks) : chunks_(chunks) {}
  PreparedChunks(const PreparedChunks&) = delete;
  PreparedChunks& operator=(const PreparedChunks&) = delete;
  virtual ~PreparedChunks() = default;
  /// Asks for a chunk that will be taken soon.
  virtual void ask(std::size_t) {}
  /// Whether more chunks may be asked for.
  [[nodiscard]] virtual bool can_ask() const { return false; }
  /// Forgets what was asked for: a caller that waits for it gets try_again. Returns whether any may wait.
  virtual bool forget_asked() { return false; }
  /// Memory for a chunk's stored bytes; goes back at its end.
  class Buffer {
   public:
    Buffer() = default;
    Buffer(PreparedChunks& owner, std::uint8_t* data, std::size_t bytes)
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
    PreparedChunks* owner_ = nullptr;
    std::uint8_t* data_ = nullptr;
    std::size_t bytes_ = 0;
    std::shared_ptr<Transfer> transfer_;  // that fills it
  };
  /// Gives a chunk's stored bytes in the memory that they arrived in, their hash compared where `checks`;
  /// nothing where they are to be read into the caller's.
  [[nodiscard]] virtual Buffer take(std::size_t, bool) { return {}; }
  /// Reads or copies them into as many bytes as they have.
  void read(std::size_t chunk, MutableBytes stored, bool checks);
  virtual void give_back(std::uint8_t*) {}
  /// Whether a disk is used, so that `begin_epoch` is worth its call.
  [[nodiscard]] virtual bool keeps_on_disk() const { return false; }
  /// As DiskCache.
  virtual void begin_epoch(NextVisit) {}
  [[nodiscard]] virtual PreparedStats stats() const { return {}; }
  virtual void reset_stats() {}

 protected:
  const ChunkSet& chunks_;
};

[[nodiscard]] std::unique_ptr<PreparedChunks> prepare_chunks(const ChunkSet& chunks,
                                                             const PreparedChunksSpec& spec);

}  // namespace chunkhit
