#include "cache/chunk_cache.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>

#include "base/memory.h"
#include "base/words.h"
#include "cache/decoded_rows.h"
#include "chunkhit/error.h"

namespace chunkhit {
namespace {

constexpr std::uint64_t kLineBytes = 64;

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

ChunkCache::ChunkCache(const ChunkSet& chunks, const ChunkCacheSpec& spec)
    : chunks_(chunks),
      spec_(spec),
      entries_(chunks.chunk_count()),
      buffers_(chunks.most_chunk_bytes(),
               std::min(chunks.chunk_count(), std::max(spec.kept_chunks, spec.chunks_ahead))) {
  if (spec.residency == Residency::decoded) {
    std::uint64_t bytes = 0;
    for (std::size_t chunk = 0; chunk < chunks.chunk_count(); ++chunk) {
      arena_starts_.push_back(bytes);
      bytes += round_up(chunks.decoded_bytes(chunks.find(chunk)), kLineBytes);
    }
    arena_ = with_memory("residency decoded: " + bytes_text(static_cast<double>(bytes)) +
                             " of samples are more memory than can be had: take residency stream",
                         [bytes] { return MemoryMap::of_memory(bytes); });
  }
  for (std::size_t part = 0; part < chunks.parts().size(); ++part) {
    const ChunkReader& file = *chunks.parts()[part];
    mapped_.push_back(chunks.is_raw(part) ? MemoryMap::of_file(file.fd(), file.byte_count()) : MemoryMap());
  }
}

bool ChunkCache::is_mapped(ChunkSet::Place place) const { return mapped_[place.part].data() != nullptr; }

// Whether a chunk's samples are used where they lie in a mapped file.
bool ChunkCache::is_in_place(ChunkSet::Place place) const {
  return spec_.residency == Residency::stream && is_mapped(place);
}

// Whether a chunk, once there, is there for ever.
bool ChunkCache::stays(ChunkSet::Place place) const {
  return spec_.residency == Residency::decoded ||
         (is_in_place(place) && spec_.check_hashes != CheckHashes::always);
}

const std::uint8_t* ChunkCache::address(std::size_t chunk, ChunkSet::Place place) const {
  if (spec_.residency == Residency::decoded) return arena_.data() + arena_starts_[chunk];
  if (is_in_place(place)) return mapped_[place.part].data() + chunks_.part(place).raw_offset(place.chunk);
  return entries_[chunk].decoded;
}

void ChunkCache::want(std::size_t chunk) {
  const std::lock_guard lock(mutex_);
  ++entries_[chunk].wanted;
  settle(chunk);
}

void ChunkCache::unwant(std::size_t chunk) {
  const std::lock_guard lock(mutex_);
  --entries_[chunk].wanted;
  settle(chunk);
}

void ChunkCache::unpin(std::size_t chunk) {
  const std::lock_guard lock(mutex_);
  --entries_[chunk].pins;
  settle(chunk);
}

// Under the lock: what nobody holds any more is listed as idle, and the longest idle chunks go.
void ChunkCache::settle(std::size_t chunk) {
  Entry& entry = entries_[chunk];
  const bool idles = entry.decoded != nullptr && entry.wanted == 0 && entry.pins == 0 &&
                     entry.state.load(std::memory_order_relaxed) == State::ready;
  if (entry.is_idle && !idles) spare_.splice(spare_.end(), idle_, entry.idle);
  if (!entry.is_idle && idles) {
    if (spare_.empty()) spare_.emplace_back();
    entry.idle = spare_.begin();
    *entry.idle = chunk;
    idle_.splice(idle_.end(), spare_, entry.idle);
  }
  entry.is_idle = idles;
  // What is checked always and used in its place is checked again when somebody asks for it again.
  const bool is_ready = entry.state.load(std::memory_order_relaxed) == State::ready;
  if (spec_.check_hashes == CheckHashes::always && is_ready && entry.wanted == 0 && entry.pins == 0 &&
      is_in_place(chunks_.find(chunk)))
    entry.state.store(State::absent, std::memory_order_relaxed);
  let_idle_go(spec_.kept_chunks);
}

// Under the lock.
void ChunkCache::let_idle_go(std::size_t most_decoded) {
  while (!idle_.empty() && buffers_.taken_count() > most_decoded) {
    release(entries_[idle_.front()]);
    spare_.splice(spare_.end(), idle_, idle_.begin());
  }
}

void ChunkCache::release(Entry& entry) {
  entry.is_idle = false;
  entry.state.store(State::absent, std::memory_order_relaxed);
  buffers_.give_back(std::exchange(entry.decoded, nullptr));
}

// Under the lock; false when the chunk is there, or known to be damaged.
bool ChunkCache::begin_loading(Entry& entry, std::unique_lock<std::mutex>& lock) {
  changed_.wait(lock, [&] { return entry.state.load(std::memory_order_relaxed) != State::loading; });
  if (entry.state.load(std::memory_order_relaxed) != State::absent) return false;
  entry.state.store(State::loading, std::memory_order_relaxed);
  return true;
}

void ChunkCache::end_loading(std::size_t chunk, State state) {
  {
    const std::lock_guard lock(mutex_);
    Entry& entry = entries_[chunk];
    entry.state.store(state, std::memory_order_release);
    if (state == State::corrupt) ++stats_.corrupt_chunks;
    if (state != State::ready) {
      if (entry.decoded != nullptr) buffers_.give_back(std::exchange(entry.decoded, nullptr));
      // Nothing of what could not be read or decoded is believed when it is tried again.
      entry.stored = ByteBuffer();
      entry.checked = false;
    }
    settle(chunk);
  }
  changed_.notify_all();
}

Bytes ChunkCache::fetch(Entry& entry, ChunkSet::Place place, ByteBuffer& scratch) {
  const ChunkReader& part = chunks_.part(place);
  const StoredChunk& stored = chunks_.stored(place);
  const bool checks = part.has_hashes() && (spec_.check_hashes == CheckHashes::always ||
                                            (spec_.check_hashes == CheckHashes::first_use && !entry.checked));
  Bytes bytes;
  if (is_mapped(place)) {
    mapped_[place.part].read_ahead(stored.offset, stored.stored_bytes);
    bytes = Bytes(mapped_[place.part].data() + stored.offset, stored.stored_bytes);
  } else if (!entry.stored.empty()) {
    bytes = entry.stored;
  } else {
    ByteBuffer& target = spec_.residency == Residency::compressed ? entry.stored : scratch;
    part.fetch_unchecked(place.chunk, target);
    bytes = target;
  }
  if (checks) part.check(place.chunk, bytes);
  entry.checked = true;
  return bytes;
}

void ChunkCache::decode(std::size_t chunk, ChunkSet::Place place, Bytes stored) {
  if (chunks_.matrix())
    decode_matrices(chunk, place, stored);
  else
    decode_images(chunk, place, stored);
}

void ChunkCache::decode_images(std::size_t chunk, ChunkSet::Place place, Bytes stored) {
  const std::uint64_t raw_bytes = chunks_.stored(place).raw_bytes;
  if (spec_.residency != Residency::decoded) {
    const MutableBytes decoded(entries_[chunk].decoded, raw_bytes);
    return decode_chunk(chunks_.part(place), place.chunk, stored, decoded);
  }
  const MutableBytes samples(arena_.data() + arena_starts_[chunk], chunks_.decoded_bytes(place));
  if (raw_bytes == samples.size()) return decode_chunk(chunks_.part(place), place.chunk, stored, samples);
  ByteBuffer padded(raw_bytes);
  decode_chunk(chunks_.part(place), place.chunk, stored, padded);
  std::memcpy(samples.data(), padded.data(), samples.size());
}

void ChunkCache::decode_matrices(std::size_t chunk, ChunkSet::Place place, Bytes stored) {
  // Kept, so that a thread allocates once.
  thread_local ByteBuffer raw;
  raw.resize(chunks_.stored(place).raw_bytes);
  decode_chunk(chunks_.part(place), place.chunk, stored, raw);
  const MutableBytes rows(
      spec_.residency == Residency::decoded ? arena_.data() + arena_starts_[chunk] : entries_[chunk].decoded,
      chunks_.decoded_bytes(place));
  try {
    decode_rows_to_memory(raw, *chunks_.matrix(), chunks_.stored(place).sample_count, rows);
  } catch (const Error& error) {
    throw Error(error.code(), chunks_.part(place).place(place.chunk) + ": " + error.what());
  }
}

void ChunkCache::take_buffer(Entry& entry) {
  const std::lock_guard lock(mutex_);
  if (!buffers_.has_free()) let_idle_go(std::max<std::size_t>(1, spec_.kept_chunks) - 1);
  entry.decoded = buffers_.take();
}

void ChunkCache::read(std::size_t chunk, ChunkSet::Place place, ByteBuffer& scratch) {
  Entry& entry = entries_[chunk];
  const bool in_place = is_in_place(place);
  if (!in_place && spec_.residency != Residency::decoded) take_buffer(entry);
  const auto begin = std::chrono::steady_clock::now();
  const Bytes stored = fetch(entry, place, scratch);
  const double fetch_seconds = seconds_since(begin);
  if (!in_place) decode(chunk, place, stored);
  const double all_seconds = seconds_since(begin);
  const std::lock_guard lock(mutex_);
  ++stats_.fetches;
  stats_.stored_bytes += stored.size();
  stats_.fetch_seconds += fetch_seconds;
  stats_.decode_seconds += all_seconds - fetch_seconds;
}

ChunkCache::Pin ChunkCache::acquire(std::size_t chunk, ByteBuffer& scratch) {
  const ChunkSet::Place place = chunks_.find(chunk);
  Entry& entry = entries_[chunk];
  if (entry.state.load(std::memory_order_acquire) == State::ready && stays(place))
    return {nullptr, chunk, address(chunk, place), true};
  std::unique_lock lock(mutex_);
  const State before = entry.state.load(std::memory_order_relaxed);
  ++entry.pins;
  Pin pin(this, chunk, nullptr, before == State::ready || before == State::corrupt);
  if (begin_loading(entry, lock)) {
    lock.unlock();
    load_now(chunk, place, scratch);
    lock.lock();
  }
  if (entry.state.load(std::memory_order_relaxed) == State::ready) pin.samples_ = address(chunk, place);
  lock.unlock();
  return pin;
}

// By the one who has begun loading.
void ChunkCache::load_now(std::size_t chunk, ChunkSet::Place place, ByteBuffer& scratch) {
  try {
    read(chunk, place, scratch);
  } catch (const Error& error) {
    const bool is_damaged = error.code() == ErrorCode::bad_data;
    const bool is_left_out = is_damaged && spec_.on_corrupt == OnCorrupt::skip;
    end_loading(chunk, is_left_out ? State::corrupt : State::absent);
    if (is_left_out) return;
    if (!is_damaged) throw;
    throw Error(error.code(), error.what() + std::string("; pack-verify tells what else is damaged"));
  } catch (...) {
    end_loading(chunk, State::absent);
    throw;
  }
  end_loading(chunk, State::ready);
}

ChunkCacheStats ChunkCache::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

void ChunkCache::reset_stats() {
  const std::lock_guard lock(mutex_);
  stats_ = {};
}

}  // namespace chunkhit
