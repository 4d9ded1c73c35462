// Decoded chunks that come and go, loaded from stored bytes in memory or in files.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "cache/chunk_buffers.h"
#include "cache/loaded_chunks.h"

namespace chunkhit {
namespace {

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

}  // namespace

std::unique_ptr<ChunkCache> make_stored_chunks(const ChunkSet& chunks, const ChunkCacheSpec& spec,
                                               ChunkArena arena) {
  return std::make_unique<StoredChunks>(chunks, spec, std::move(arena));
}

}  // namespace chunkhit
