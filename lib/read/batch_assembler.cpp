#include "read/batch_assembler.h"

#include <algorithm>

namespace chunkhit {

void BatchCounts::add(const BatchCounts& other) {
  assemble_seconds += other.assemble_seconds;
  page_seconds += other.page_seconds;
  chunk_hits += other.chunk_hits;
  chunk_misses += other.chunk_misses;
}

// The room of the largest batch, so that no later one allocates.
BatchSamples::BatchSamples(const ChunkSet& chunks, const ChunkGrid& grid, ChunkCache& cache,
                           const BatchChunksSpec& spec)
    : grid_(grid), cache_(cache), spec_(spec) {
  samples_.reserve(spec.batch_size);
  pins_.reserve(std::min<std::uint64_t>(spec.batch_size, chunks.chunk_count()));
  if (!spec.by_chunk) held_.resize(chunks.chunk_count());
}

void BatchSamples::find(const BatchTask& task, const EpochBatches::Batch& batch) {
  samples_.clear();
  for (std::uint32_t at = 0; at < batch.size; ++at) {
    const ChunkGrid::Place place = task.order(task.batches.place(batch, at), window_);
    samples_.push_back({place.chunk, place.in_chunk, at, nullptr});
  }
  if (!spec_.by_chunk) return;
  std::sort(samples_.begin(), samples_.end(), [](const Sample& a, const Sample& b) {
    return a.chunk != b.chunk ? a.chunk < b.chunk : a.in_chunk < b.in_chunk;
  });
}

const std::uint8_t* BatchSamples::acquire(std::uint64_t chunk, BatchCounts& counts, ByteBuffer& stored) {
  pins_.push_back(cache_.acquire(chunk, stored));
  ++(pins_.back().hit() ? counts.chunk_hits : counts.chunk_misses);
  return pins_.back().samples();
}

void BatchSamples::hold_all(BatchCounts& counts, ByteBuffer& stored) {
  ++batch_;
  for (Sample& sample : samples_) {
    Held& held = held_[sample.chunk];
    if (held.batch != batch_) held = {batch_, acquire(sample.chunk, counts, stored)};
    sample.decoded = held.decoded;
  }
}

std::size_t BatchSamples::hold(std::size_t begin, BatchCounts& counts, ByteBuffer& stored) {
  pins_.clear();
  if (!spec_.by_chunk) {
    hold_all(counts, stored);
    return samples_.size();
  }
  const std::uint8_t* decoded = nullptr;
  bool is_full = false;
  for (std::size_t i = begin; i < samples_.size(); ++i) {
    Sample& sample = samples_[i];
    if (i == begin || sample.chunk != samples_[i - 1].chunk) {
      if (is_full) return i;
      decoded = acquire(sample.chunk, counts, stored);
      is_full = !spec_.holds_all && pins_.back().holds_memory();
    }
    sample.decoded = decoded;
  }
  return samples_.size();
}

std::uint64_t BatchSamples::leave_out_corrupt() {
  const auto is_left_out = [](const Sample& each) { return each.decoded == nullptr; };
  if (std::none_of(samples_.begin(), samples_.end(), is_left_out)) return 0;
  const std::uint64_t count = std::erase_if(samples_, is_left_out);
  std::sort(samples_.begin(), samples_.end(), [](const Sample& a, const Sample& b) { return a.at < b.at; });
  return count;
}

void BatchSamples::close_gaps() {
  for (std::uint32_t at = 0; at < samples_.size(); ++at) samples_[at].at = at;
}

}  // namespace chunkhit
