#include "read/image_batch_assembler.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/bytes.h"
#include "base/throw_error.h"
#include "decode/image_decoder.h"
#include "read/loader_stats.h"

namespace chunkhit {
namespace {

/// Prefetches the first cache lines of a sample and its page's translation; the hardware prefetches the rest.
[[gnu::always_inline]] inline void prefetch(const std::uint8_t* sample) {
  constexpr std::size_t kLines = 4;
  for (std::size_t line = 0; line < kLines; ++line) __builtin_prefetch(sample + line * kCacheLineBytes);
}

}  // namespace

// Reserves memory for the largest chunk, so that no later chunk allocates.
ImageBatchAssembler::ImageBatchAssembler(const ImageBatchContext& context)
    : context_(context),
      image_bytes_(context.copier.images().sample_bytes()),
      field_outs_(context.copier.field_count()),
      samples_(context.source.chunks(), context.grid, context.cache, context.chunks) {
  stored_.reserve(context.source.chunks().max_stored_bytes());
  if (context.copier.copies()) reads_.reserve(context.chunks.slice_samples);
}

void ImageBatchAssembler::make(const BatchTask& task, std::size_t slot) {
  counts_ = {};
  BatchBuffer& buffer = context_.ring[slot];
  const EpochBatches::Batch batch = task.batches.batch(task.index);
  samples_.find(task, batch);
  for (std::size_t begin = 0, end = 0; begin < samples_.all().size(); begin = end) {
    end = samples_.hold(begin, counts_, stored_);
    if (context_.copier.copies()) read_samples(begin, end, buffer);
    copy_samples(begin, end, task, batch.pass, buffer);
  }
  samples_.release();
  // Labels lie far apart: fetched in a loop of their own, they do not wait for one another.
  for (const BatchSamples::Sample& each : samples_.all()) {
    buffer.left_out[each.at] = each.held == Held::left_out ? 1 : 0;
    if (each.held == Held::left_out) continue;
    buffer.samples[each.at] = samples_.number(each);
    buffer.uses[each.at] = batch.pass + context_.echo * each.repeat;
    copy_label(buffer.samples[each.at], each.at, buffer);
  }
}

MadeBatch ImageBatchAssembler::complete(const BatchTask& task, std::size_t slot) {
  BatchBuffer& buffer = context_.ring[slot];
  const std::size_t size = task.batches.batch(task.index).size;
  const std::size_t count = close_gaps(size, buffer);
  show(task, count, buffer);
  return {count, count * image_bytes_, size - count};
}

/// Moves the samples behind those that were left out up; returns how many there are.
std::size_t ImageBatchAssembler::close_gaps(std::size_t batch_size, BatchBuffer& buffer) const {
  std::size_t count = 0;
  for (std::size_t at = 0; at < batch_size; ++at)
    if (buffer.left_out[at] == 0) move_sample(at, count++, buffer);
  return count;
}

/// Whether a sample's bytes are read from the file to their place in the batch.
bool ImageBatchAssembler::is_read_in_place(std::size_t index) const {
  return context_.copier.copies() && samples_.all()[index].held == Held::file;
}

/// Reads samples one by one straight into the batch.
void ImageBatchAssembler::read_samples(std::size_t begin, std::size_t end, BatchBuffer& buffer) {
  const std::span<const BatchSamples::Sample> all = samples_.all();
  reads_.clear();
  for (std::size_t i = begin; i < end; ++i)
    if (is_read_in_place(i))
      reads_.push_back({all[i].chunk, all[i].in_chunk, buffer.pixels.data() + all[i].at * image_bytes_});
  if (reads_.empty()) return;
  const CopyClock clock;
  context_.cache.read_samples(reads_);
  counts_.read_bytes += reads_.size() * image_bytes_;
  auto read = reads_.begin();
  for (std::size_t i = begin; i < end; ++i)
    if (is_read_in_place(i) && (read++)->out == nullptr) samples_.leave_out(i);
  clock.add_to(counts_);
}

/// Writes the samples of one held chunk to their positions in the batch, and prefetches the next sample
/// meanwhile.
void ImageBatchAssembler::copy_samples(std::size_t begin, std::size_t end, const BatchTask& task,
                                       std::uint32_t pass, BatchBuffer& buffer) {
  const std::span<const BatchSamples::Sample> all = samples_.all();
  const std::uint64_t step = context_.source.chunks().sample_step();
  const CopyClock clock;
  const double decoded_before = counts_.decode_seconds;
  for (std::size_t i = begin; i < end; ++i) {
    const BatchSamples::Sample& each = all[i];
    if (i + 1 < end && all[i + 1].decoded != nullptr && step != 0)
      prefetch(all[i + 1].decoded + all[i + 1].in_chunk * step);
    if (each.held == Held::left_out || is_read_in_place(i)) continue;
    const std::uint8_t* const stored = context_.cache.sample(each.chunk, each.in_chunk, each.from(), sample_);
    if (stored == nullptr) {
      samples_.leave_out(i);
      continue;
    }
    if (each.held == Held::file) counts_.read_bytes += sample_.size();
    if (!write_sample(i, stored, task, pass, buffer)) samples_.leave_out(i);
  }
  clock.add_to(counts_);
  counts_.assemble_seconds -= counts_.decode_seconds - decoded_before;
}

/// Writes a sample to its position; returns whether it could be decoded. Throws where damage is not skipped.
bool ImageBatchAssembler::write_sample(std::size_t at, const std::uint8_t* stored, const BatchTask& task,
                                       std::uint32_t pass, BatchBuffer& buffer) {
  const BatchSamples::Sample& each = samples_.all()[at];
  const std::uint64_t number = samples_.number(each);
  const SampleUse use{context_.seed, task.epoch, number, pass + context_.echo * each.repeat};
  std::uint8_t* const out = buffer.pixels.data() + each.at * image_bytes_;
  for (std::size_t i = 0; i < field_outs_.size(); ++i)
    field_outs_[i] = buffer.fields[i].data() + each.at * context_.copier.field(i).sample_bytes();
  try {
    counts_.decode_seconds += context_.copier.write(stored, use, out, field_outs_);
  } catch (const ImageError& error) {
    if (context_.cache.skips_corrupt()) return false;
    const ChunkSet& chunks = context_.source.chunks();
    const ChunkSet::SampleLocation location = chunks.find_sample(number);
    throw_bad_data(chunks.parts()[location.part]->path() + ": sample " + std::to_string(location.sample) +
                   ": " + error.reason());
  }
  return true;
}

void ImageBatchAssembler::move_sample(std::size_t from, std::size_t to, BatchBuffer& buffer) const {
  if (from == to) return;
  const std::size_t bytes = image_bytes_, columns = context_.source.label_columns();
  std::memcpy(buffer.pixels.data() + to * bytes, buffer.pixels.data() + from * bytes, bytes);
  for (std::size_t i = 0; i < buffer.fields.size(); ++i) {
    const std::size_t field_bytes = context_.copier.field(i).sample_bytes();
    std::uint8_t* const all = buffer.fields[i].data();
    std::memcpy(all + to * field_bytes, all + from * field_bytes, field_bytes);
  }
  buffer.samples[to] = buffer.samples[from];
  buffer.uses[to] = buffer.uses[from];
  if (columns == 0) buffer.labels[to] = buffer.labels[from];
  for (std::size_t i = 0; i < columns; ++i)
    buffer.label_values[to * columns + i] = buffer.label_values[from * columns + i];
}

void ImageBatchAssembler::show(const BatchTask& task, std::size_t count, BatchBuffer& buffer) const {
  ImageBatch& batch = buffer.batch;
  static_cast<BatchValues&>(batch) = {{buffer.pixels.data(), count * image_bytes_},
                                      context_.copier.images().dtype()};
  show_fields(count, buffer);
  batch.samples = std::span(buffer.samples).first(count);
  batch.uses = std::span(buffer.uses).first(count);
  BatchLabels& labels = batch;
  if (context_.source.label_columns() == 0)
    labels = BatchLabels(std::span<const std::int64_t>(buffer.labels).first(count));
  else
    labels = BatchLabels(
        std::span<const float>(buffer.label_values).first(count * context_.source.label_columns()));
  batch.shape = context_.copier.images().shape();
  batch.shape.batch = count;
  batch.epoch = task.epoch;
  batch.index = task.index;
}

void ImageBatchAssembler::show_fields(std::size_t count, BatchBuffer& buffer) const {
  const std::vector<SampleField>& fields = context_.source.chunks().sample().pairs;
  buffer.shown.resize(fields.size());
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const SampleWriter& writer = context_.copier.field(i);
    buffer.shown[i].name = fields[i].name;
    buffer.shown[i].role = fields[i].role;
    static_cast<BatchValues&>(buffer.shown[i]) = {{buffer.fields[i].data(), count * writer.sample_bytes()},
                                                  writer.dtype()};
  }
  buffer.batch.fields = buffer.shown;
}

void ImageBatchAssembler::copy_label(std::uint64_t sample, std::size_t at, BatchBuffer& buffer) const {
  if (context_.source.label_columns() == 0) {
    buffer.labels[at] = context_.source.label(sample);
    return;
  }
  const std::span<const float> values = context_.source.label_values(sample);
  std::copy(values.begin(), values.end(),
            buffer.label_values.begin() + static_cast<std::ptrdiff_t>(at * values.size()));
}

}  // namespace chunkhit
