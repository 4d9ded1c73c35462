#include "cache/loaded_chunks.h"

#include <utility>

#include "chunkhit/error.h"

namespace chunkhit {
namespace {

// Smaller chunks are loaded as a whole, and so are those of which more than a share of the samples is wanted.
constexpr std::uint64_t kMinBytesOfSome = 256 << 10;
constexpr std::uint64_t kMaxShareOfSome = 4;

}  // namespace

LoadedChunks::LoadedChunks(const ChunkSet& chunks, const ChunkCacheSpec& spec, ChunkArena arena)
    : ChunkCache(chunks, spec),
      arena_(reads_, spec.cache, std::move(arena)),
      states_(chunks.chunk_count()),
      wanted_(chunks.chunk_count()) {
  for (std::size_t part = 0; part < chunks.parts().size(); ++part)
    reads_some_ = reads_some_ || (max_asked() == 0 && can_read_some({part, 0}));
}

void LoadedChunks::ask(std::size_t chunk) {
  if (state(chunk) != State::absent || !arena_.lacks(chunk)) return;
  if (!arena_.is_shared()) return reads_.prepared().ask(chunk);
  const std::lock_guard lock(mutex_);
  if (state(chunk) == State::absent) arena_.ask(chunk);
}

void LoadedChunks::want(std::size_t chunk) {
  const std::lock_guard lock(mutex_);
  ++wanted_[chunk];
  settle(chunk);
}

void LoadedChunks::unwant(std::size_t chunk) {
  const std::lock_guard lock(mutex_);
  --wanted_[chunk];
  settle(chunk);
}

LoadedChunks::State LoadedChunks::load_once(std::size_t chunk, ByteBuffer& scratch) {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return state(chunk) != State::loading; });
    if (state(chunk) != State::absent) return state(chunk);
    states_[chunk] = State::loading;
  }
  State end = State::ready;
  try {
    try {
      load(chunk, scratch);
    } catch (const Error& error) {
      reads_.leave_out_or_throw(error);
      reads_.count_damaged(chunk);
      end = State::corrupt;
    }
  } catch (...) {
    end_loading(chunk, State::absent);
    throw;
  }
  end_loading(chunk, end);
  return end;
}

void LoadedChunks::end_loading(std::size_t chunk, State state) {
  {
    const std::lock_guard lock(mutex_);
    states_[chunk].store(state, std::memory_order_release);
  }
  changed_.notify_all();
}

void LoadedChunks::read(std::size_t chunk, MutableBytes memory, ByteBuffer& scratch,
                        std::span<const std::uint64_t> wanted) {
  const ChunkSet::Location location = reads_.chunks().find(chunk);
  const ChunkReads::Clock::time_point begin = ChunkReads::Clock::now();
  if (!arena_.keeps_stored() || !arena_.fill(chunk, scratch))
    return reads_.load(chunk, location, memory, scratch, wanted);
  const ChunkReads::Clock::time_point fetched = ChunkReads::Clock::now();
  reads_.decode(location, arena_.memory(chunk), memory, wanted);
  reads_.count_fetch(location, begin, fetched);
}

/// Whether a chunk's samples are found without decoding all of them.
bool LoadedChunks::can_read_some(ChunkSet::Location location) const {
  const ChunkReader& part = reads_.chunks().part(location);
  if (reads_.chunks().sample_step() == 0) return false;
  if (!reads_.chunks().is_raw(location.part)) return part.splits_chunks();
  // Where damage is skipped, a chunk is left out as a whole: none of its samples is given before.
  return !reads_.checks(part) || (part.compares_samples() && !reads_.skips_corrupt());
}

/// Whether so few samples of a chunk are wanted that no others are read now.
bool LoadedChunks::reads_only(std::size_t chunk, std::size_t wanted_count) {
  const ChunkSet::Location location = reads_.chunks().find(chunk);
  const StoredChunk& stored = reads_.chunks().stored(location);
  if (!reads_some() || stored.raw_bytes < kMinBytesOfSome ||
      wanted_count * kMaxShareOfSome > stored.sample_count || !can_read_some(location))
    return false;
  const std::lock_guard lock(mutex_);
  return state(chunk) == State::absent && !is_wanted(chunk) && is_first_use(chunk);
}

ChunkCache::Pin LoadedChunks::acquire_some(std::size_t chunk, std::span<const std::uint64_t> wanted,
                                           ByteBuffer& scratch, ByteBuffer& room) {
  if (!reads_only(chunk, wanted.size())) return acquire(chunk, scratch);
  const ChunkSet::Location location = reads_.chunks().find(chunk);
  if (reads_.chunks().is_raw(location.part)) return {{Held::file}, false};
  try {
    room.resize(reads_.chunks().stored(location).raw_bytes);
    read(chunk, room, scratch, wanted);
    return {{Held::room, room.data()}, false};
  } catch (const Error& error) {
    reads_.leave_out_or_throw(error);
  }
  // Found damaged again, it is left out.
  return acquire(chunk, scratch);
}

}  // namespace chunkhit
