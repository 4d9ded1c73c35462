// Samples that a chunk cache reads one by one from their file.
#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

#include "base/throw_error.h"
#include "cache/chunk_cache.h"
#include "chunkhit/error.h"

namespace chunkhit {
namespace {

// Number of changes of a file during reading after which it is given up.
constexpr int kMaxChanges = 8;

}  // namespace

/// Whether samples of a chunk are read from the file this time: copying all of them to memory of ours, while
/// the system has them in memory, would only take time. Their hash was compared before.
bool ChunkCache::stays_in_file(const Entry& entry, ChunkSet::Location location) const {
  if (!spec_.reads_cached || !chunks_.is_raw(location.part)) return false;
  const ChunkReader& part = chunks_.part(location);
  const bool was_read = !checks(part) || entry.stamp.load(std::memory_order_relaxed) != 0;
  return was_read && part.is_cached(location.chunk);
}

// Reads first and compares the stamp afterwards, so that a write before the read is detected.
void ChunkCache::read_sample(std::size_t chunk, ChunkSet::Location location, std::uint64_t offset,
                             MutableBytes out) {
  const ChunkReader& part = chunks_.part(location);
  for (int change = 0; change < kMaxChanges; ++change) {
    part.fetch_raw(location.chunk, offset, out);
    if (!checks(part) || part.file().stamp() == entries_[chunk].stamp.load(std::memory_order_relaxed)) return;
    hash_in_file(chunk, location);
  }
  throw_bad_data(part.path() + ": is written to while it is read");
}

const std::uint8_t* ChunkCache::sample(std::size_t chunk, std::uint64_t in_chunk, const std::uint8_t* held,
                                       ByteBuffer& room) {
  if (held != &kInFile && chunks_.sample_step() != 0) return held + in_chunk * chunks_.sample_step();
  const auto [offset, count] = chunks_.sample_bytes(chunks_.find(chunk), in_chunk);
  if (held != &kInFile) return held + offset;
  room.resize(count);
  return try_sample(chunk, offset, room) ? room.data() : nullptr;
}

/// Reads bytes of a chunk; returns whether it did, or leaves the chunk out.
bool ChunkCache::try_sample(std::size_t chunk, std::uint64_t offset, MutableBytes out) {
  try {
    read_sample(chunk, chunks_.find(chunk), offset, out);
    return true;
  } catch (const Error& error) {
    if (!leaves_out(error)) throw_with_advice(error);
  }
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_[chunk];
  const State state = entry.state.load(std::memory_order_relaxed);
  // What another thread has in memory meanwhile is whole.
  const bool is_in_file = state == State::ready && address(chunk, chunks_.find(chunk)) == &kInFile;
  if (state != State::absent && !is_in_file) return false;
  entry.state.store(State::corrupt, std::memory_order_relaxed);
  ++stats_.corrupt_chunks;
  return false;
}

// Reads first and asks each file for its stamp once, afterwards: samples of one that was written to are read
// again.
void ChunkCache::read_samples(std::span<SampleRead> samples) {
  const std::uint64_t step = chunks_.sample_step();
  std::size_t known_part = SIZE_MAX;
  std::uint64_t stamp = 0;
  const auto read_alone = [&](SampleRead& each) {
    if (!try_sample(each.chunk, each.in_chunk * step, {each.out, step})) each.out = nullptr;
  };
  for (std::size_t i = 0, count = 0; i < samples.size(); i += count) {
    const SampleRead& first = samples[i];
    // Those that follow each other in the file and in memory are read at once.
    const auto follows = [&](const SampleRead& each) {
      return each.chunk == first.chunk && each.in_chunk == first.in_chunk + count &&
             each.out == first.out + count * step;
    };
    for (count = 1; i + count < samples.size() && follows(samples[i + count]);) ++count;
    const ChunkSet::Location location = chunks_.find(first.chunk);
    try {
      chunks_.part(location).fetch_raw(location.chunk, first.in_chunk * step, {first.out, count * step});
    } catch (const Error&) {
      std::ranges::for_each(samples.subspan(i, count), read_alone);
    }
  }
  for (SampleRead& each : samples) {
    const ChunkSet::Location location = chunks_.find(each.chunk);
    const ChunkReader& part = chunks_.part(location);
    if (each.out == nullptr || !checks(part)) continue;
    if (std::exchange(known_part, location.part) != location.part) stamp = part.file().stamp();
    if (stamp != entries_[each.chunk].stamp.load(std::memory_order_relaxed)) read_alone(each);
  }
}

}  // namespace chunkhit
