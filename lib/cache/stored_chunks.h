// Decoded chunks that come and go, loaded from stored bytes in memory or in files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <vector>

#include "cache/chunk_buffers.h"
#include "cache/loaded_chunks.h"

namespace chunkhit {

/// Cache::compressed and Cache::none. A chunk stays decoded while it is pinned or wanted; then it is idle,
/// and the longest idle chunks are evicted.
class StoredChunks final : public LoadedChunks {
 public:
  StoredChunks(const ChunkSet& chunks, const ChunkCacheSpec& spec, ChunkArena arena);
  [[nodiscard]] Pin acquire(std::size_t chunk, ByteBuffer& scratch) override;

 private:
  struct Entry {
    bool is_idle = false;
    bool is_received = false;  // `decoded` is the memory that it arrived in
    std::uint32_t pins = 0;
    std::uint64_t last_use = 0;  // of which only some samples were read: a number of uses_
    std::uint8_t* decoded = nullptr;
    std::list<std::size_t>::iterator idle;  // valid where is_idle
  };

  void load(std::size_t chunk, ByteBuffer& scratch) override;
  [[nodiscard]] bool receive(std::size_t chunk);
  void take_buffer(Entry& entry);
  void give_back(Entry& entry);
  [[nodiscard]] bool is_first_use(std::size_t chunk) override;
  void settle(std::size_t chunk) override;
  void unpin(std::size_t chunk) override;
  void evict(std::size_t max_decoded);
  /// How many chunks may be decoded beside one that is loaded.
  [[nodiscard]] std::size_t kept_beside() const { return kept_chunks_ == 0 ? 0 : kept_chunks_ - 1; }

  const std::size_t kept_chunks_;
  const std::size_t buffer_bytes_;
  std::vector<Entry> entries_;    // all from here on under the lock
  std::uint64_t uses_ = 0;        // of chunks of which only some samples were wanted
  std::list<std::size_t> idle_;   // the longest unused first
  std::list<std::size_t> spare_;  // nodes for `idle_`: a chunk that comes and goes allocates nothing
  ChunkBuffers buffers_;
  std::size_t decoded_count_ = 0;  // entries with `decoded`
};

}  // namespace chunkhit
