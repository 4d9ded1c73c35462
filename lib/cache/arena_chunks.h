// Chunks that stay in memory, which processes may share: each is filled once.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "cache/chunk_arena.h"
#include "cache/chunk_reads.h"
#include "cache/chunk_set.h"

namespace chunkhit {

/// What of a source stays in memory.
enum class Kept : std::uint8_t {
  decoded,  ///< chunks as Cache::decoded keeps them
  stored,   ///< stored bytes of chunks
  pixels,   ///< of images of their own sizes
};

/// Tells such memory of processes that share it from other memory; nothing where it cannot be shared.
/// `checks`: whether bytes are compared with their hashes.
[[nodiscard]] std::optional<std::uint64_t> arena_id(const ChunkSet& chunks, Kept kept, bool checks);

/// Memory in which all chunks stay, as `cache` keeps them; none where they come and go. `checks`, `shares`:
/// see arena_id. Throws as ChunkArena.
[[nodiscard]] ChunkArena make_arena(const ChunkSet& chunks, Cache cache, bool checks, bool shares);

class ChunkFiller;

/// Fills the chunks of an arena when they are needed; where processes share it, also those that this process
/// has asked for, as they arrive. Any thread may call anything.
class ArenaChunks {
 public:
  /// `arena`: make_arena for the same `cache`.
  ArenaChunks(ChunkReads& reads, Cache cache, ChunkArena arena);
  ArenaChunks(const ArenaChunks&) = delete;
  ArenaChunks& operator=(const ArenaChunks&) = delete;
  ~ArenaChunks();
  [[nodiscard]] bool keeps_stored() const { return cache_ == Cache::compressed; }
  [[nodiscard]] bool is_shared() const { return arena_.is_shared(); }
  /// What is kept of a chunk, once `fill` has returned true.
  [[nodiscard]] MutableBytes memory(std::size_t chunk) const;
  [[nodiscard]] const std::uint8_t* data(std::size_t chunk) const { return arena_.chunk(chunk); }
  [[nodiscard]] bool is_ready(std::size_t chunk) const { return arena_.is_ready(chunk); }
  /// Whether this is the first call for a chunk, of all processes.
  [[nodiscard]] bool first_use(std::size_t chunk) { return arena_.first_use(chunk); }
  /// Fills a chunk, where no process has done so. Returns whether it is there: not where a process is stuck
  /// while it fills it. Throws as ChunkReads.
  [[nodiscard]] bool fill(std::size_t chunk, ByteBuffer& scratch);
  /// Gives up a chunk whose bytes turned out to be damaged: the next `fill` reads it again.
  void forget(std::size_t chunk);
  /// Whether asking for a chunk makes sense: it is not filled, and nobody fills it.
  [[nodiscard]] bool lacks(std::size_t chunk) const {
    return cache_ == Cache::none || arena_.is_empty(chunk);
  }
  /// Asks for a chunk that no other process asks for, and fills it once it arrives. No thread of this process
  /// may begin to fill it meanwhile.
  void ask(std::size_t chunk);
  /// Gives up what was asked for; returns whether a thread may wait for what does not arrive.
  bool forget_asked();

 private:
  struct Chunk {
    std::atomic<bool> was_found{false};  // in the arena, or put there
    std::atomic<pid_t> reserved_by{0};   // by `ask` of this process
  };
  [[nodiscard]] ChunkArena::Claim claim(std::size_t chunk);
  void fill_now(std::size_t chunk, ByteBuffer& scratch);
  void start_filling(std::size_t chunk);
  void fill_asked(std::size_t chunk);
  void give_up_asked();

  ChunkReads& reads_;
  const Cache cache_;
  ChunkArena arena_;  // Cache::decoded: all samples; Cache::compressed: stored bytes
  std::vector<Chunk> chunks_;
  std::atomic<std::uint32_t> interrupts_{0};  // of waiting for other processes
  std::mutex mutex_;                          // guards the two below
  std::unique_ptr<ChunkFiller> filler_;       // made for the first chunk that is asked for
  pid_t filler_process_ = 0;
};

}  // namespace chunkhit
