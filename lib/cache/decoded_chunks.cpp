// Chunks that all stay in memory, decoded.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "cache/chunk_buffers.h"
#include "cache/loaded_chunks.h"

namespace chunkhit {
namespace {

/// Keeps every chunk in an arena, once it is loaded; in memory of its own where a process is stuck that fills
/// it there.
class DecodedChunks final : public LoadedChunks {
 public:
  DecodedChunks(const ChunkSet& chunks, const ChunkCacheSpec& spec, ChunkArena arena)
      : LoadedChunks(chunks, spec, std::move(arena)),
        own_(chunks.chunk_count()),
        buffers_(chunks.max_chunk_bytes(), 1) {}

  /// Takes no lock where the chunk is ready.
  [[nodiscard]] Pin acquire(std::size_t chunk, ByteBuffer& scratch) override {
    const State before = state(chunk);
    if (before == State::ready) return {held(chunk), true};
    const bool hit = before == State::corrupt || arena_.is_ready(chunk);
    const bool is_ready = load_once(chunk, scratch) == State::ready;
    return {is_ready ? held(chunk) : HeldChunk{}, hit};
  }

 private:
  [[nodiscard]] HeldChunk held(std::size_t chunk) const {
    return {Held::memory, own_[chunk] != nullptr ? own_[chunk] : arena_.data(chunk)};
  }
  [[nodiscard]] bool is_first_use(std::size_t chunk) override {
    return !arena_.is_ready(chunk) && arena_.first_use(chunk);
  }
  void load(std::size_t chunk, ByteBuffer& scratch) override {
    if (arena_.fill(chunk, scratch)) return;
    std::unique_lock lock(mutex_);
    std::uint8_t* const memory = buffers_.take();
    lock.unlock();
    try {
      const ChunkSet::Location location = reads_.chunks().find(chunk);
      read(chunk, {memory, reads_.chunks().decoded_bytes(location)}, scratch);
    } catch (...) {
      lock.lock();
      buffers_.give_back(memory);
      throw;
    }
    own_[chunk] = memory;
  }

  std::vector<std::uint8_t*> own_;  // memory of a chunk that is not in the arena; else null
  ChunkBuffers buffers_;            // for these, under the lock
};

}  // namespace

std::unique_ptr<ChunkCache> make_decoded_chunks(const ChunkSet& chunks, const ChunkCacheSpec& spec,
                                                ChunkArena arena) {
  return std::make_unique<DecodedChunks>(chunks, spec, std::move(arena));
}

}  // namespace chunkhit
