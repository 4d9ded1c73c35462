#include "cache/chunk_cache.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "base/per_thread.h"
#include "base/resources.h"
#include "base/throw_error.h"
#include "base/words.h"
#include "cache/decoded_rows.h"
#include "chunkhit/error.h"

namespace chunkhit {
namespace {

// Smaller chunks are loaded as a whole, and so are those of which more than a share of the samples is wanted.
constexpr std::uint64_t kMinBytesOfSome = 256 << 10;
constexpr std::uint64_t kMaxShareOfSome = 4;

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

std::optional<std::uint64_t> arena_id(const ChunkSet& chunks, Kept kept, bool checks) {
  std::optional<std::uint64_t> id = chunks.contents_id();
  // What was not compared with its hashes is for processes that do not compare either.
  if (id) id = *id ^ (2 * static_cast<std::uint64_t>(kept) + (checks ? 1 : 0));
  return id;
}

ChunkArena make_arena(const ChunkSet& chunks, Cache cache, bool checks, bool shares) {
  if (cache == Cache::none) return {};
  const bool is_decoded = cache == Cache::decoded;
  std::vector<std::uint64_t> sizes;
  for (std::size_t chunk = 0; chunk < chunks.chunk_count(); ++chunk) {
    const ChunkSet::Location location = chunks.find(chunk);
    sizes.push_back(is_decoded ? chunks.decoded_bytes(location) : chunks.stored(location).stored_bytes);
  }
  const Kept kept = is_decoded ? Kept::decoded : Kept::stored;
  const std::uint64_t bytes = is_decoded ? chunks.decoded_bytes() : chunks.stored_bytes();
  return with_memory(
      std::string(is_decoded ? "cache decoded: " : "cache compressed: ") +
          bytes_text(static_cast<double>(bytes)) +
          " of samples are more memory than can be had: take cache none",
      [&] { return ChunkArena(sizes, shares ? arena_id(chunks, kept, checks) : std::nullopt); });
}

ChunkCache::ChunkCache(const ChunkSet& chunks, const ChunkCacheSpec& spec, ChunkArena arena)
    : chunks_(chunks),
      spec_(spec),
      arena_(std::move(arena)),
      entries_(chunks.chunk_count()),
      buffers_(chunks.max_chunk_bytes(),
               std::min(chunks.chunk_count(), std::max(spec.kept_chunks, spec.chunks_ahead))) {
  PreparedChunksSpec prepared = spec.prepared;
  if (chunks.is_raw() && spec.cache == Cache::none)
    prepared.kept_chunks = std::max(spec.kept_chunks, spec.chunks_ahead);
  prepared_ = prepare_chunks(chunks, prepared);
  for (std::size_t part = 0; part < chunks.parts().size(); ++part)
    reads_some_ = reads_some_ || spec.reads_samples || (max_asked() == 0 && can_read_some({part, 0}));
}

void ChunkCache::ask(std::size_t chunk) {
  const Entry& entry = entries_[chunk];
  const auto is_absent = [&] { return entry.state.load(std::memory_order_relaxed) == State::absent; };
  if (!is_absent() || (spec_.cache != Cache::none && !arena_.is_empty(chunk))) return;
  if (!arena_.is_shared()) return prepared_->ask(chunk);
  const std::lock_guard lock(mutex_);
  if (is_absent() && arena_.reserve(chunk)) ask_reserved(chunk);
}

std::uint8_t* ChunkCache::address(std::size_t chunk) const {
  const Entry& entry = entries_[chunk];
  return spec_.cache == Cache::decoded && entry.decoded == nullptr ? arena_.chunk(chunk) : entry.decoded;
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
  const bool idles = entry.decoded != nullptr && spec_.cache != Cache::decoded && entry.wanted == 0 &&
                     entry.pins == 0 && entry.state.load(std::memory_order_relaxed) == State::ready;
  if (entry.is_idle && !idles) spare_.splice(spare_.end(), idle_, entry.idle);
  if (!entry.is_idle && idles) {
    if (spare_.empty()) spare_.emplace_back();
    entry.idle = spare_.begin();
    *entry.idle = chunk;
    idle_.splice(idle_.end(), spare_, entry.idle);
  }
  entry.is_idle = idles;
  let_idle_go(spec_.kept_chunks);
}

// Under the lock.
void ChunkCache::let_idle_go(std::size_t max_decoded) {
  while (!idle_.empty() && decoded_count_ > max_decoded) {
    release(entries_[idle_.front()]);
    spare_.splice(spare_.end(), idle_, idle_.begin());
  }
}

void ChunkCache::release(Entry& entry) {
  entry.is_idle = false;
  entry.state.store(State::absent, std::memory_order_relaxed);
  give_back(entry);
}

// Under the lock.
void ChunkCache::give_back(Entry& entry) {
  if (entry.decoded == nullptr) return;
  std::uint8_t* const memory = std::exchange(entry.decoded, nullptr);
  if (std::exchange(entry.is_received, false))
    prepared_->give_back(memory);
  else
    buffers_.give_back(memory);
  --decoded_count_;
}

// Called under the lock. Waits while another thread loads the chunk; returns false if it is loaded or
// corrupt.
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
    if (state == State::corrupt) count_damaged(entry);
    if (state != State::ready) {
      give_back(entry);
      // A failed chunk is read again from the file at the next try.
      if (spec_.cache != Cache::none && arena_.is_ready(chunk)) arena_.forget(chunk);
    }
    settle(chunk);
  }
  changed_.notify_all();
}

bool ChunkCache::checks(const ChunkReader& part) const {
  return spec_.check_hashes != CheckHashes::never && part.has_hashes();
}

// Returns where to read a chunk's stored bytes: directly to the samples if they are raw, else to a buffer.
MutableBytes ChunkCache::target(std::size_t chunk, ChunkSet::Location location, ByteBuffer& scratch) {
  const std::uint64_t bytes = chunks_.stored(location).stored_bytes;
  const bool is_raw = chunks_.is_raw(location.part);
  if (is_raw && spec_.cache == Cache::none) return {entries_[chunk].decoded, bytes};
  if (is_raw && spec_.cache == Cache::decoded && bytes == chunks_.decoded_bytes(location))
    return {address(chunk), bytes};
  scratch.resize(bytes);
  return scratch;
}

/// A chunk that was reserved is this process's own.
ChunkArena::Claim ChunkCache::claim(std::size_t chunk) {
  if (entries_[chunk].reserved_by.exchange(0) != ::getpid()) return arena_.claim(chunk, &interrupts_);
  arena_.claim_reserved(chunk);
  return ChunkArena::Claim::own;
}

/// Lets `fill` write what stays in memory, where no process has done so. Returns whether it is there: not
/// where a process is stuck while it fills it.
template <class Fill>
bool ChunkCache::fill_in_arena(std::size_t chunk, const Fill& fill) {
  std::atomic<bool>& was_in_arena = entries_[chunk].was_in_arena;
  if (was_in_arena && arena_.is_ready(chunk)) return true;
  const ChunkArena::Claim claim = this->claim(chunk);
  if (claim == ChunkArena::Claim::stuck) return false;
  if (claim == ChunkArena::Claim::own) {
    try {
      fill();
    } catch (...) {
      arena_.give_up(chunk);
      throw;
    }
    was_in_arena = true;  // before a thread that waits for it finds it there
    arena_.finish(chunk);
  }
  if (claim == ChunkArena::Claim::filled) prepared_->forget(chunk);
  if (!was_in_arena.exchange(true) && claim == ChunkArena::Claim::filled) {
    const std::lock_guard lock(mutex_);
    ++stats_.shared_chunks;
  }
  return true;
}

// What is in memory was compared when it was read.
Bytes ChunkCache::fetch(std::size_t chunk, ChunkSet::Location location, ByteBuffer& scratch) {
  if (spec_.cache == Cache::compressed && fill_stored(chunk, location))
    return stored_in_arena(chunk, location);
  const MutableBytes stored = target(chunk, location, scratch);
  prepared_->read(chunk, stored, checks(chunks_.part(location)));
  return stored;
}

MutableBytes ChunkCache::stored_in_arena(std::size_t chunk, ChunkSet::Location location) const {
  return {arena_.chunk(chunk), chunks_.stored(location).stored_bytes};
}

bool ChunkCache::fill_stored(std::size_t chunk, ChunkSet::Location location) {
  return fill_in_arena(chunk, [&] {
    prepared_->read(chunk, stored_in_arena(chunk, location), checks(chunks_.part(location)));
  });
}

void ChunkCache::restore(ChunkSet::Location location, Bytes stored, MutableBytes raw,
                         std::span<const std::uint64_t> wanted) const {
  const ChunkReader& part = chunks_.part(location);
  decode_chunk(part, location.chunk, stored, raw, {wanted, checks(part)});
}

void ChunkCache::decode(std::size_t chunk, ChunkSet::Location location, Bytes stored) {
  if (chunks_.holds_rows())
    decode_matrices(chunk, location, stored);
  else
    decode_images(chunk, location, stored);
}

void ChunkCache::decode_images(std::size_t chunk, ChunkSet::Location location, Bytes stored) {
  const std::uint64_t raw_bytes = chunks_.stored(location).raw_bytes;
  if (spec_.cache != Cache::decoded) {
    const MutableBytes decoded(entries_[chunk].decoded, raw_bytes);
    return restore(location, stored, decoded);
  }
  const MutableBytes samples(address(chunk), chunks_.decoded_bytes(location));
  if (raw_bytes == samples.size()) return restore(location, stored, samples);
  ByteBuffer padded(raw_bytes);
  restore(location, stored, padded);
  std::memcpy(samples.data(), padded.data(), samples.size());
}

void ChunkCache::decode_matrices(std::size_t chunk, ChunkSet::Location location, Bytes stored) {
  // Kept, so that a thread allocates once.
  static PerThread<ByteBuffer> buffer;
  ByteBuffer& raw = buffer.get();
  raw.resize(chunks_.stored(location).raw_bytes);
  restore(location, stored, raw);
  const MutableBytes rows(address(chunk), chunks_.decoded_bytes(location));
  try {
    decode_rows_to_memory(raw, chunks_.matrix(), chunks_.stored(location).sample_count, chunks_.row_arrays(),
                          rows);
  } catch (const Error& error) {
    throw Error(error.code(), chunks_.part(location).location(location.chunk) + ": " + error.what());
  }
}

/// Evicts an idle chunk if no buffer is free.
void ChunkCache::take_buffer(Entry& entry) {
  const std::lock_guard lock(mutex_);
  if (!buffers_.has_free()) let_idle_go(std::max<std::size_t>(1, spec_.kept_chunks) - 1);
  entry.decoded = buffers_.take();
  ++decoded_count_;
}

void ChunkCache::keep(Entry& entry, PreparedChunk arrived) {
  const std::lock_guard lock(mutex_);
  let_idle_go(std::max<std::size_t>(1, spec_.kept_chunks) - 1);
  entry.decoded = arrived.memory.release();
  entry.is_received = true;
  ++decoded_count_;
}

bool ChunkCache::fill_decoded(std::size_t chunk, ChunkSet::Location location, ByteBuffer& scratch) {
  return fill_in_arena(chunk, [&] { load(chunk, location, scratch); });
}

void ChunkCache::read(std::size_t chunk, ChunkSet::Location location, ByteBuffer& scratch) {
  if (spec_.cache != Cache::decoded) return load(chunk, location, scratch);
  if (fill_decoded(chunk, location, scratch)) return;
  take_buffer(entries_[chunk]);
  load(chunk, location, scratch);
}

void ChunkCache::load(std::size_t chunk, ChunkSet::Location location, ByteBuffer& scratch) {
  Entry& entry = entries_[chunk];
  const bool is_raw = chunks_.is_raw(location.part);
  const bool keeps_stored = spec_.cache == Cache::compressed || (spec_.cache == Cache::decoded && is_raw);
  const auto begin = std::chrono::steady_clock::now();
  // What arrives in other memory is decoded from there, or kept there, unless it has a place of its own here.
  PreparedChunk arrived;
  if (!keeps_stored) arrived = prepared_->take(chunk, checks(chunks_.part(location)));
  Bytes stored = arrived.bytes();
  const bool has_arrived = arrived.memory != nullptr;
  if (has_arrived && is_raw)
    keep(entry, std::move(arrived));
  else if (spec_.cache != Cache::decoded)
    take_buffer(entry);
  if (!has_arrived) stored = fetch(chunk, location, scratch);
  const double fetch_seconds = seconds_since(begin);
  if (stored.data() != address(chunk)) decode(chunk, location, stored);
  count_fetch(chunks_.stored(location).stored_bytes, fetch_seconds, seconds_since(begin) - fetch_seconds);
}

void ChunkCache::count_fetch(std::uint64_t stored_bytes, double fetch_seconds, double decode_seconds) {
  const std::lock_guard lock(mutex_);
  ++stats_.fetches;
  stats_.stored_bytes += stored_bytes;
  stats_.fetch_seconds += fetch_seconds;
  stats_.decode_seconds += decode_seconds;
}

/// The first tests are lock-free: chunks that stay cached, or take no memory, need no pin count.
ChunkCache::Pin ChunkCache::acquire(std::size_t chunk, ByteBuffer& scratch) {
  const ChunkSet::Location location = chunks_.find(chunk);
  Entry& entry = entries_[chunk];
  if (spec_.reads_samples) {
    chunks_.part(location).read_ahead(location.chunk);
    entry.state.store(State::ready, std::memory_order_relaxed);
    return {nullptr, chunk, &kInFile, true};
  }
  if (entry.state.load(std::memory_order_acquire) == State::ready && spec_.cache == Cache::decoded)
    return {nullptr, chunk, address(chunk), true};
  std::unique_lock lock(mutex_);
  const State before = entry.state.load(std::memory_order_relaxed);
  ++entry.pins;
  const bool is_shared = spec_.cache == Cache::decoded && arena_.is_ready(chunk);
  Pin pin(this, chunk, nullptr, before == State::ready || before == State::corrupt || is_shared);
  if (begin_loading(entry, lock)) {
    lock.unlock();
    load_now(chunk, location, scratch);
    lock.lock();
  }
  if (entry.state.load(std::memory_order_relaxed) == State::ready) pin.samples_ = address(chunk);
  lock.unlock();
  return pin;
}

// Loads a chunk; called by the thread for which begin_loading returned true.
void ChunkCache::load_now(std::size_t chunk, ChunkSet::Location location, ByteBuffer& scratch) {
  try {
    read(chunk, location, scratch);
  } catch (const Error& error) {
    end_loading(chunk, leaves_out(error) ? State::corrupt : State::absent);
    if (!leaves_out(error)) throw_with_advice(error);
    return;
  } catch (...) {
    end_loading(chunk, State::absent);
    throw;
  }
  end_loading(chunk, State::ready);
}

/// Whether a chunk's samples are found without decoding all of them.
bool ChunkCache::can_read_some(ChunkSet::Location location) const {
  const ChunkReader& part = chunks_.part(location);
  if (chunks_.sample_step() == 0) return false;
  if (!chunks_.is_raw(location.part)) return part.splits_chunks();
  // Where damage is skipped, a chunk is left out as a whole: none of its samples is given before.
  return !checks(part) || (part.compares_samples() && spec_.on_corrupt == OnCorrupt::fail);
}

/// Whether a chunk is not there and was not used lately. One that is used again before as many others as stay
/// is loaded: it may be used more often.
bool ChunkCache::begin_reading_some(std::size_t chunk) {
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_[chunk];
  if (entry.state.load(std::memory_order_relaxed) != State::absent || entry.wanted > 0) return false;
  if (spec_.cache == Cache::decoded) return !arena_.is_ready(chunk) && arena_.first_use(chunk);
  const bool all_stay = spec_.kept_chunks >= entries_.size();
  const std::uint64_t before = std::exchange(entry.last_use, ++uses_);
  return before == 0 || (!all_stay && uses_ - before > spec_.kept_chunks);
}

ChunkCache::Pin ChunkCache::acquire_some(std::size_t chunk, std::span<const std::uint64_t> wanted,
                                         ByteBuffer& scratch, ByteBuffer& room) {
  const ChunkSet::Location location = chunks_.find(chunk);
  Entry& entry = entries_[chunk];
  if (spec_.reads_samples) {
    // The system is asked for chunks that are used again: those of the first batch do not wait for each
    // other.
    const bool is_asked = entry.state.load(std::memory_order_relaxed) == State::ready;
    if (!is_asked && entry.was_used.exchange(true, std::memory_order_relaxed)) return acquire(chunk, scratch);
    return {nullptr, chunk, &kInFile, true};
  }
  const StoredChunk& stored = chunks_.stored(location);
  if (!reads_some_ || stored.raw_bytes < kMinBytesOfSome ||
      wanted.size() * kMaxShareOfSome > stored.sample_count || !can_read_some(location) ||
      !begin_reading_some(chunk))
    return acquire(chunk, scratch);
  if (chunks_.is_raw(location.part)) return {nullptr, chunk, &kInFile, false};
  try {
    read_some(chunk, location, wanted, scratch, room);
    return {nullptr, chunk, room.data(), false};
  } catch (const Error& error) {
    if (!leaves_out(error)) throw_with_advice(error);
  }
  // Found damaged again, it is left out.
  return acquire(chunk, scratch);
}

void ChunkCache::read_some(std::size_t chunk, ChunkSet::Location location,
                           std::span<const std::uint64_t> wanted, ByteBuffer& scratch, ByteBuffer& room) {
  const StoredChunk& stored = chunks_.stored(location);
  const auto begin = std::chrono::steady_clock::now();
  const Bytes bytes = fetch(chunk, location, scratch);
  const double fetch_seconds = seconds_since(begin);
  room.resize(stored.raw_bytes);
  restore(location, bytes, room, wanted);
  count_fetch(stored.stored_bytes, fetch_seconds, seconds_since(begin) - fetch_seconds);
}

bool ChunkCache::leaves_out(const Error& error) const {
  return error.code() == ErrorCode::bad_data && spec_.on_corrupt == OnCorrupt::skip;
}

void ChunkCache::throw_with_advice(const Error& error) {
  if (error.code() != ErrorCode::bad_data) throw Error(error);
  throw Error(error.code(), error.what() + std::string("; pack-verify shows what else is damaged"));
}

ChunkCacheStats ChunkCache::stats() const {
  const std::lock_guard lock(mutex_);
  ChunkCacheStats stats = stats_;
  stats.prepared = prepared_->stats();
  return stats;
}

void ChunkCache::reset_stats() {
  const std::lock_guard lock(mutex_);
  stats_ = {};
  for (Entry& entry : entries_) entry.is_damaged = false;
  prepared_->reset_stats();
}

}  // namespace chunkhit
