#include "cache/chunk_cache.h"

#include "cache/decoded_chunks.h"
#include "cache/file_samples.h"
#include "cache/stored_chunks.h"

namespace chunkhit {

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
  if (spec.cache == Cache::decoded) return std::make_unique<DecodedChunks>(chunks, spec, std::move(arena));
  return std::make_unique<StoredChunks>(chunks, spec, std::move(arena));
}

}  // namespace chunkhit
