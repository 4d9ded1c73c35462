#include "cache/chunk_cache.h"

#include <atomic>
#include <vector>

#include "cache/loaded_chunks.h"

namespace chunkhit {
namespace {

/// Reads samples one by one: keeps nothing in memory, as the system has a page cache for the files, and is
/// asked for chunks.
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

}  // namespace

const std::uint8_t* ChunkCache::find_sample(std::size_t chunk, std::uint64_t in_chunk, HeldChunk from,
                                            ByteBuffer& room) {
  const auto [offset, count] = reads_.chunks().sample_bytes(reads_.chunks().find(chunk), in_chunk);
  if (from.held != Held::file) return from.samples + offset;
  room.resize(count);
  return reads_.read_samples(chunk, in_chunk, offset, room) ? room.data() : nullptr;
}

void ChunkCache::read_samples(std::span<SampleRead> samples) {
  const std::uint64_t step = reads_.chunks().sample_step();
  const auto read = [&](const SampleRead& first, std::size_t count) {
    return reads_.read_samples(first.chunk, first.in_chunk, first.in_chunk * step, {first.out, count * step});
  };
  for (std::size_t i = 0, count = 0; i < samples.size(); i += count) {
    const SampleRead& first = samples[i];
    // Those that follow each other in the file and in memory are read at once.
    const auto follows = [&](const SampleRead& each) {
      return each.chunk == first.chunk && each.in_chunk == first.in_chunk + count &&
             each.out == first.out + count * step;
    };
    for (count = 1; i + count < samples.size() && follows(samples[i + count]);) ++count;
    if (read(first, count)) continue;
    for (SampleRead& each : samples.subspan(i, count))
      if (count == 1 || !read(each, 1)) each.out = nullptr;
  }
}

std::unique_ptr<ChunkCache> make_chunk_cache(const ChunkSet& chunks, const ChunkCacheSpec& spec,
                                             ChunkArena arena) {
  if (spec.reads_samples) return std::make_unique<FileSamples>(chunks, spec);
  if (spec.cache == Cache::decoded) return make_decoded_chunks(chunks, spec, std::move(arena));
  return make_stored_chunks(chunks, spec, std::move(arena));
}

}  // namespace chunkhit
