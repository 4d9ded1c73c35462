// Chunks that are loaded as a whole: what DecodedChunks and StoredChunks share.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "cache/arena_chunks.h"
#include "cache/chunk_cache.h"

namespace chunkhit {

/// One thread loads a chunk, and others that need it wait. A chunk of which few samples are wanted is not
/// loaded at its first use.
class LoadedChunks : public ChunkCache {
 public:
  void ask(std::size_t chunk) final;
  bool forget_asked() final { return arena_.forget_asked(); }
  void want(std::size_t chunk) final;
  void unwant(std::size_t chunk) final;
  [[nodiscard]] Pin acquire_some(std::size_t chunk, std::span<const std::uint64_t> wanted,
                                 ByteBuffer& scratch, ByteBuffer& room) final;

 protected:
  /// Of a chunk: absent → loading → ready, or corrupt for good where damage is skipped. A failed load, and
  /// eviction, make it absent again.
  enum class State : std::uint8_t { absent, loading, ready, corrupt };

  LoadedChunks(const ChunkSet& chunks, const ChunkCacheSpec& spec, ChunkArena arena);
  [[nodiscard]] State state(std::size_t chunk) const {
    return states_[chunk].load(std::memory_order_acquire);
  }
  void set_absent(std::size_t chunk) { states_[chunk] = State::absent; }  ///< under the lock
  /// Whether a batch that is not made yet needs a chunk; under the lock.
  [[nodiscard]] bool is_wanted(std::size_t chunk) const { return wanted_[chunk] > 0; }
  /// Loads an absent chunk, or waits while another thread does; returns ready or corrupt. Throws what `load`
  /// does, save damage that is skipped.
  State load_once(std::size_t chunk, ByteBuffer& scratch);
  /// Reads and decodes a chunk as ChunkReads::load, from stored bytes in the arena if it keeps these.
  void read(std::size_t chunk, MutableBytes memory, ByteBuffer& scratch,
            std::span<const std::uint64_t> wanted = {});

  std::mutex mutex_;   // guards what is said to be under the lock
  ArenaChunks arena_;  // not of Cache::none

 private:
  /// Puts a chunk into memory; keeps nothing where it throws.
  virtual void load(std::size_t chunk, ByteBuffer& scratch) = 0;
  /// Notes a use of an absent chunk of which few samples are wanted, under the lock; returns whether it was
  /// not used lately. One that is used again before as many others as stay is loaded: it may be used more
  /// often.
  [[nodiscard]] virtual bool is_first_use(std::size_t chunk) = 0;
  /// Called under the lock after a chunk was wanted more or less often.
  virtual void settle(std::size_t /*chunk*/) {}
  void end_loading(std::size_t chunk, State state);
  [[nodiscard]] bool can_read_some(ChunkSet::Location location) const;
  [[nodiscard]] bool reads_only(std::size_t chunk, std::size_t wanted_count);

  std::vector<std::atomic<State>> states_;  // changed under the lock
  std::vector<std::uint32_t> wanted_;
  std::condition_variable changed_;
};

/// Cache::decoded: all chunks stay.
[[nodiscard]] std::unique_ptr<ChunkCache> make_decoded_chunks(const ChunkSet& chunks,
                                                              const ChunkCacheSpec& spec, ChunkArena arena);
/// Cache::compressed and Cache::none: chunks come and go.
[[nodiscard]] std::unique_ptr<ChunkCache> make_stored_chunks(const ChunkSet& chunks,
                                                             const ChunkCacheSpec& spec, ChunkArena arena);

}  // namespace chunkhit
