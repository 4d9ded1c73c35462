// Samples that a chunk cache reads one by one from their file.
#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

#include "cache/chunk_cache.h"
#include "chunkhit/error.h"

namespace chunkhit {

const std::uint8_t* ChunkCache::sample(std::size_t chunk, std::uint64_t in_chunk, const std::uint8_t* held,
                                       ByteBuffer& room) {
  if (held != &kInFile && chunks_.sample_step() != 0) return held + in_chunk * chunks_.sample_step();
  const auto [offset, count] = chunks_.sample_bytes(chunks_.find(chunk), in_chunk);
  if (held != &kInFile) return held + offset;
  room.resize(count);
  return read_from_file(chunk, in_chunk, offset, room) ? room.data() : nullptr;
}

/// Reads and compares samples of a chunk from the one with index `first` on; returns whether they are whole,
/// or throws where damage is not skipped.
bool ChunkCache::read_from_file(std::size_t chunk, std::uint64_t first, std::uint64_t offset,
                                MutableBytes out) {
  const ChunkSet::Location location = chunks_.find(chunk);
  const ChunkReader& part = chunks_.part(location);
  try {
    part.fetch_samples(location.chunk, first, offset, out, checks(part));
    return true;
  } catch (const Error& error) {
    if (!leaves_out(error)) throw_with_advice(error);
  }
  const std::lock_guard lock(mutex_);
  count_damaged(entries_[chunk]);
  return false;
}

/// Under the lock: counts a chunk once, however often samples of it are found damaged.
void ChunkCache::count_damaged(Entry& entry) {
  if (!std::exchange(entry.is_damaged, true)) ++stats_.corrupt_chunks;
}

void ChunkCache::read_samples(std::span<SampleRead> samples) {
  const std::uint64_t step = chunks_.sample_step();
  const auto read = [&](const SampleRead& first, std::size_t count) {
    return read_from_file(first.chunk, first.in_chunk, first.in_chunk * step, {first.out, count * step});
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

}  // namespace chunkhit
