#include "cache/stored_chunks.h"

#include <algorithm>
#include <mutex>
#include <utility>

namespace chunkhit {

StoredChunks::StoredChunks(const ChunkSet& chunks, const ChunkCacheSpec& spec, ChunkArena arena)
    : LoadedChunks(chunks, spec, std::move(arena)),
      kept_chunks_(spec.kept_chunks),
      buffer_bytes_(chunks.max_chunk_bytes()),
      entries_(chunks.chunk_count()),
      buffers_(buffer_bytes_, std::min(chunks.chunk_count(), std::max(spec.kept_chunks, spec.chunks_ahead))) {
}

ChunkCache::Pin StoredChunks::acquire(std::size_t chunk, ByteBuffer& scratch) {
  Entry& entry = entries_[chunk];
  std::unique_lock lock(mutex_);
  State found = state(chunk);
  const bool hit = found == State::ready || found == State::corrupt;
  ++entry.pins;
  settle(chunk);  // what is pinned is not idle
  lock.unlock();
  Pin pin(*this, chunk, {}, hit);
  if (!hit) found = load_once(chunk, scratch);
  // Being pinned, a ready chunk stays.
  if (found == State::ready) pin.hold({Held::memory, entry.decoded});
  return pin;
}

void StoredChunks::unpin(std::size_t chunk) {
  const std::lock_guard lock(mutex_);
  --entries_[chunk].pins;
  settle(chunk);
}

/// Under the lock: what nobody holds any more is listed as idle, and the longest idle chunks go.
void StoredChunks::settle(std::size_t chunk) {
  Entry& entry = entries_[chunk];
  const bool idles = state(chunk) == State::ready && entry.pins == 0 && !is_wanted(chunk);
  if (entry.is_idle && !idles) spare_.splice(spare_.end(), idle_, entry.idle);
  if (!entry.is_idle && idles) {
    if (spare_.empty()) spare_.emplace_back();
    entry.idle = spare_.begin();
    *entry.idle = chunk;
    idle_.splice(idle_.end(), spare_, entry.idle);
  }
  entry.is_idle = idles;
  evict(kept_chunks_);
}

/// Under the lock: evicts idle chunks until so many are decoded, as far as there are idle ones.
void StoredChunks::evict(std::size_t max_decoded) {
  while (!idle_.empty() && decoded_count_ > max_decoded) {
    const std::size_t chunk = idle_.front();
    entries_[chunk].is_idle = false;
    set_absent(chunk);
    give_back(entries_[chunk]);
    spare_.splice(spare_.end(), idle_, idle_.begin());
  }
}

/// Under the lock.
void StoredChunks::give_back(Entry& entry) {
  std::uint8_t* const memory = std::exchange(entry.decoded, nullptr);
  if (std::exchange(entry.is_received, false))
    reads_.prepared().give_back(memory);
  else
    buffers_.give_back(memory);
  --decoded_count_;
}

/// Evicts an idle chunk if no buffer is free.
void StoredChunks::take_buffer(Entry& entry) {
  const std::lock_guard lock(mutex_);
  if (!buffers_.has_free()) evict(kept_beside());
  entry.decoded = buffers_.take();
  ++decoded_count_;
}

/// Keeps a raw chunk in the memory that it arrives in; returns whether a server has it.
bool StoredChunks::receive(std::size_t chunk) {
  const ChunkSet::Location location = reads_.chunks().find(chunk);
  if (arena_.keeps_stored() || !reads_.chunks().is_raw(location.part)) return false;
  const ChunkReads::Clock::time_point begin = ChunkReads::Clock::now();
  PreparedChunk arrived = reads_.take(chunk, location);
  if (!arrived.memory) return false;
  reads_.count_fetch(location, begin, ChunkReads::Clock::now());
  const std::lock_guard lock(mutex_);
  evict(kept_beside());
  Entry& entry = entries_[chunk];
  entry.decoded = arrived.memory.release();
  entry.is_received = true;
  ++decoded_count_;
  return true;
}

void StoredChunks::load(std::size_t chunk, ByteBuffer& scratch) {
  if (receive(chunk)) return;
  Entry& entry = entries_[chunk];
  take_buffer(entry);
  try {
    read(chunk, {entry.decoded, buffer_bytes_}, scratch);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    give_back(entry);
    // A failed chunk is read again from the file at the next try.
    if (arena_.keeps_stored()) arena_.forget(chunk);
    throw;
  }
}

bool StoredChunks::is_first_use(std::size_t chunk) {
  const bool all_stay = kept_chunks_ >= entries_.size();
  const std::uint64_t before = std::exchange(entries_[chunk].last_use, ++uses_);
  return before == 0 || (!all_stay && uses_ - before > kept_chunks_);
}

}  // namespace chunkhit
