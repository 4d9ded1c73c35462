#include "read/batch_maker.h"

#include <algorithm>
#include <chrono>
#include <span>

namespace chunkhit {
namespace {

/// Brings the first lines of a sample near, and its page's address: the rest the processor foresees.
void prefetch(const std::uint8_t* sample) {
  constexpr std::size_t kLineBytes = 64;
  constexpr std::size_t kLines = 4;
  for (std::size_t line = 0; line < kLines; ++line) __builtin_prefetch(sample + line * kLineBytes);
}

}  // namespace

void BatchCounts::add(const BatchCounts& other) {
  assemble_seconds += other.assemble_seconds;
  chunk_hits += other.chunk_hits;
  chunk_misses += other.chunk_misses;
}

void BatchMaker::make(std::uint64_t epoch, const EpochOrder& order, const EpochBatches& batches,
                      std::uint64_t index, BatchBuffer& buffer) {
  counts_ = {};
  pins_.clear();
  const EpochBatches::Batch batch = batches.batch(index);
  find_samples(order, batches, batch);
  const bool any_corrupt = !pin_chunks();
  buffer.corrupt_samples = any_corrupt ? leave_out_corrupt() : 0;
  const auto begin = std::chrono::steady_clock::now();
  copy_samples(epoch, batch.pass, buffer);
  counts_.assemble_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  pins_.clear();
  ImageBatch& made = buffer.batch;
  made.shape = writer_.shape();
  made.shape.batch = wanted_.size();
  made.epoch = epoch;
  made.index = index;
}

// Samples of one chunk come side by side, so that each chunk is asked for once.
void BatchMaker::find_samples(const EpochOrder& order, const EpochBatches& batches,
                              const EpochBatches::Batch& batch) {
  wanted_.clear();
  for (std::uint32_t at = 0; at < batch.size; ++at) {
    const ChunkGrid::Place place = order(batches.place(batch, at), window_);
    wanted_.push_back({place.chunk, place.in_chunk, at, nullptr});
  }
  std::sort(wanted_.begin(), wanted_.end(), [](const Wanted& a, const Wanted& b) {
    return a.chunk != b.chunk ? a.chunk < b.chunk : a.in_chunk < b.in_chunk;
  });
}

bool BatchMaker::pin_chunks() {
  const std::uint64_t sample_bytes = source_.chunks().sample().byte_count();
  const std::uint8_t* samples = nullptr;
  bool whole = true;
  for (std::size_t i = 0; i < wanted_.size(); ++i) {
    Wanted& wanted = wanted_[i];
    if (i == 0 || wanted.chunk != wanted_[i - 1].chunk) {
      pins_.push_back(cache_.acquire(wanted.chunk, stored_));
      samples = pins_.back().samples();
      ++(pins_.back().was_there() ? counts_.chunk_hits : counts_.chunk_misses);
    }
    if (samples == nullptr)
      whole = false;
    else
      wanted.stored = samples + wanted.in_chunk * sample_bytes;
  }
  return whole;
}

// The samples behind those that are left out move up.
std::uint64_t BatchMaker::leave_out_corrupt() {
  const std::uint64_t count =
      std::erase_if(wanted_, [](const Wanted& each) { return each.stored == nullptr; });
  std::sort(wanted_.begin(), wanted_.end(), [](const Wanted& a, const Wanted& b) { return a.at < b.at; });
  for (std::uint32_t at = 0; at < wanted_.size(); ++at) wanted_[at].at = at;
  return count;
}

void BatchMaker::copy_samples(std::uint64_t epoch, std::uint32_t pass, BatchBuffer& buffer) {
  const std::size_t sample_bytes = writer_.sample_bytes();
  for (std::size_t i = 0; i < wanted_.size(); ++i) {
    const Wanted& wanted = wanted_[i];
    if (i + 1 < wanted_.size()) prefetch(wanted_[i + 1].stored);
    const std::uint64_t sample = grid_.first_sample(wanted.chunk) + wanted.in_chunk;
    writer_.write(wanted.stored, {seed_, epoch, sample, pass},
                  buffer.pixels.data() + wanted.at * sample_bytes);
    buffer.samples[wanted.at] = sample;
    copy_label(sample, wanted.at, buffer);
  }
  ImageBatch& batch = buffer.batch;
  const std::size_t count = wanted_.size();
  if (writer_.as() == PixelType::u8)
    batch.pixels = {buffer.pixels.data(), count * sample_bytes};
  else
    batch.values = {reinterpret_cast<const float*>(buffer.pixels.data()),
                    count * sample_bytes / sizeof(float)};
  batch.samples = std::span(buffer.samples).first(count);
  if (source_.label_columns() == 0)
    batch.labels = std::span(buffer.labels).first(count);
  else
    batch.label_values = std::span(buffer.label_values).first(count * source_.label_columns());
}

void BatchMaker::copy_label(std::uint64_t sample, std::size_t at, BatchBuffer& buffer) const {
  if (source_.label_columns() == 0) {
    buffer.labels[at] = source_.label(sample);
    return;
  }
  const std::span<const float> values = source_.label_values(sample);
  std::copy(values.begin(), values.end(),
            buffer.label_values.begin() + static_cast<std::ptrdiff_t>(at * values.size()));
}

}  // namespace chunkhit
