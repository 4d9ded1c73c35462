#include "cache/chunk_reads.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/per_thread.h"
#include "cache/decoded_rows.h"

namespace chunkhit {
namespace {

PreparedChunksSpec prepared_spec(const ChunkSet& chunks, const ChunkCacheSpec& spec) {
  PreparedChunksSpec prepared = spec.prepared;
  if (chunks.is_raw() && spec.cache == Cache::none)
    prepared.kept_chunks = std::max(spec.kept_chunks, spec.chunks_ahead);
  return prepared;
}

double seconds(ChunkReads::Clock::duration time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

ChunkReads::ChunkReads(const ChunkSet& chunks, const ChunkCacheSpec& spec)
    : chunks_(chunks),
      checks_(spec.check_hashes != CheckHashes::never),
      skips_corrupt_(spec.on_corrupt == OnCorrupt::skip),
      prepared_(prepare_chunks(chunks, prepared_spec(chunks, spec))),
      is_damaged_(chunks.chunk_count()) {}

void ChunkReads::leave_out_or_throw(const Error& error) const {
  if (error.code() != ErrorCode::bad_data) throw Error(error);
  if (!skips_corrupt_)
    throw Error(error.code(), error.what() + std::string("; pack-verify shows what else is damaged"));
}

void ChunkReads::decode(ChunkSet::Location location, Bytes stored, MutableBytes memory,
                        std::span<const std::uint64_t> wanted) const {
  if (chunks_.holds_rows()) return decode_matrices(location, stored, memory);
  const ChunkReader& part = chunks_.part(location);
  const std::uint64_t raw_bytes = chunks_.stored(location).raw_bytes;
  const ChunkUse use{wanted, checks(part)};
  if (raw_bytes <= memory.size())
    return decode_chunk(part, location.chunk, stored, memory.first(raw_bytes), use);
  ByteBuffer padded(raw_bytes);
  decode_chunk(part, location.chunk, stored, padded, use);
  std::memcpy(memory.data(), padded.data(), memory.size());
}

void ChunkReads::decode_matrices(ChunkSet::Location location, Bytes stored, MutableBytes memory) const {
  // Kept, so that a thread allocates once.
  static PerThread<ByteBuffer> buffer;
  const ChunkReader& part = chunks_.part(location);
  const StoredChunk& chunk = chunks_.stored(location);
  ByteBuffer& raw = buffer.get();
  raw.resize(chunk.raw_bytes);
  decode_chunk(part, location.chunk, stored, raw, {{}, checks(part)});
  try {
    decode_rows_to_memory(raw, chunks_.matrix(), chunk.sample_count, chunks_.row_arrays(), memory);
  } catch (const Error& error) {
    throw Error(error.code(), part.location(location.chunk) + ": " + error.what());
  }
}

/// Raw chunks are read to their memory at once; what a server sent is decoded from where it arrived.
void ChunkReads::load(std::size_t chunk, ChunkSet::Location location, MutableBytes memory,
                      ByteBuffer& scratch, std::span<const std::uint64_t> wanted) {
  const Clock::time_point begin = Clock::now();
  const std::uint64_t bytes = chunks_.stored(location).stored_bytes;
  const bool is_raw = chunks_.is_raw(location.part);
  PreparedChunk arrived;
  if (!is_raw) arrived = take(chunk, location);
  Bytes stored = arrived.bytes();
  if (!arrived.memory) {
    const bool is_in_place = is_raw && bytes <= memory.size();
    if (!is_in_place) scratch.resize(bytes);
    const MutableBytes target = is_in_place ? memory.first(bytes) : MutableBytes(scratch);
    fetch(chunk, location, target);
    stored = target;
  }
  const Clock::time_point fetched = Clock::now();
  if (stored.data() != memory.data()) decode(location, stored, memory, wanted);
  count_fetch(location, begin, fetched);
}

bool ChunkReads::read_samples(std::size_t chunk, std::uint64_t first, std::uint64_t offset,
                              MutableBytes out) {
  const ChunkSet::Location location = chunks_.find(chunk);
  const ChunkReader& part = chunks_.part(location);
  try {
    part.fetch_samples(location.chunk, first, offset, out, checks(part));
    return true;
  } catch (const Error& error) {
    leave_out_or_throw(error);
  }
  count_damaged(chunk);
  return false;
}

void ChunkReads::count_fetch(ChunkSet::Location location, Clock::time_point begin,
                             Clock::time_point fetched) {
  const std::lock_guard lock(mutex_);
  ++stats_.fetches;
  stats_.stored_bytes += chunks_.stored(location).stored_bytes;
  stats_.fetch_seconds += seconds(fetched - begin);
  stats_.decode_seconds += seconds(Clock::now() - fetched);
}

void ChunkReads::count_shared() {
  const std::lock_guard lock(mutex_);
  ++stats_.shared_chunks;
}

void ChunkReads::count_damaged(std::size_t chunk) {
  const std::lock_guard lock(mutex_);
  if (!is_damaged_[chunk]) ++stats_.corrupt_chunks;
  is_damaged_[chunk] = true;
}

ChunkCacheStats ChunkReads::stats() const {
  const std::lock_guard lock(mutex_);
  ChunkCacheStats stats = stats_;
  stats.prepared = prepared_->stats();
  return stats;
}

void ChunkReads::reset_stats() {
  const std::lock_guard lock(mutex_);
  stats_ = {};
  is_damaged_.assign(is_damaged_.size(), false);
  prepared_->reset_stats();
}

}  // namespace chunkhit
