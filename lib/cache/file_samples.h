// Samples that are read one by one from their files.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cache/chunk_cache.h"

namespace chunkhit {

/// Keeps nothing in memory: the system has a page cache for the files, and is asked for chunks.
class FileSamples final : public ChunkCache {
 public:
  FileSamples(const ChunkSet& chunks, const ChunkCacheSpec& spec)
      : ChunkCache(chunks, spec), uses_(chunks.chunk_count()) {}

  [[nodiscard]] Pin acquire(std::size_t chunk, ByteBuffer& /*scratch*/) override {
    const ChunkSet::Location location = reads_.chunks().find(chunk);
    reads_.chunks().part(location).read_ahead(location.chunk);
    uses_[chunk].store(Use::asked, std::memory_order_relaxed);
    return {{Held::file}, true};
  }
  /// Asks for chunks that are used again: those of the first batch do not wait for each other.
  [[nodiscard]] Pin acquire_some(std::size_t chunk, std::span<const std::uint64_t> /*wanted*/,
                                 ByteBuffer& scratch, ByteBuffer& /*room*/) override {
    Use none = Use::none;
    if (!uses_[chunk].compare_exchange_strong(none, Use::some, std::memory_order_relaxed) &&
        none == Use::some)
      return acquire(chunk, scratch);
    return {{Held::file}, true};
  }

 private:
  enum class Use : std::uint8_t { none, some, asked };
  std::vector<std::atomic<Use>> uses_;  // of each chunk
};

}  // namespace chunkhit
