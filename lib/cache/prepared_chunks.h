// Stored bytes of a source's chunks: asked for ahead, taken, given back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
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

class PreparedChunks;

/// Gives a chunk's memory back, and ends what fills it.
struct GiveBackMemory {
  PreparedChunks* owner = nullptr;
  std::shared_ptr<Transfer> transfer = {};
  void operator()(std::uint8_t* memory) const;
};

/// A chunk's stored bytes in the memory that they arrived in.
struct PreparedChunk {
  std::unique_ptr<std::uint8_t, GiveBackMemory> memory;  ///< released by `give_back`
  std::size_t byte_count = 0;
  [[nodiscard]] MutableBytes bytes() const { return {memory.get(), byte_count}; }
};

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
  /// Forgets one chunk that was asked for and is not needed any more.
  virtual void forget(std::size_t) {}
  /// Gives a chunk's stored bytes in the memory that they arrived in, their hash compared where `checks`;
  /// nothing where they are to be read into the caller's.
  [[nodiscard]] virtual PreparedChunk take(std::size_t, bool) { return {}; }
  /// Reads or copies them into as many bytes as they have.
  void read(std::size_t chunk, MutableBytes stored, bool checks);
  virtual void give_back(std::uint8_t*) {}
  /// Whether a disk is used, so that `begin_epoch` is worth its call.
  [[nodiscard]] virtual bool keeps_on_disk() const { return false; }
  /// As DiskCache.
  virtual void begin_epoch(NextVisit&&) {}
  [[nodiscard]] virtual PreparedStats stats() const { return {}; }
  virtual void reset_stats() {}

 protected:
  const ChunkSet& chunks_;
};

[[nodiscard]] std::unique_ptr<PreparedChunks> prepare_chunks(const ChunkSet& chunks,
                                                             const PreparedChunksSpec& spec);

}  // namespace chunkhit
