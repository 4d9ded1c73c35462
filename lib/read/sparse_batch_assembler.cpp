#include "read/sparse_batch_assembler.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "batch/sparse_values.h"
#include "cache/decoded_rows.h"
#include "chunkhit/error.h"
#include "read/loader_stats.h"

namespace chunkhit {
namespace {

EntryFormat entry_format(const SparseLoaderOptions& options, const SparseSource& source) {
  const MatrixShape& shape = source.matrix();
  return {.id_bytes = id_bytes_of(shape),
          .value_type = shape.value_type,
          .stored_scale = shape.scale,
          .binarize = options.binarize,
          .scale = options.scale,
          .normalize = options.normalize,
          .has_times = source.chunks().reads_times()};
}

/// CSR buffers are sized for the longest rows, so that no batch needs to grow them.
std::size_t matrix_bytes(const SparseBatchFormat& format, const SparseSource& source,
                         std::size_t batch_size) {
  if (format.format == SparseFormat::csr)
    return csr_block_bytes(batch_size, source.max_entries(batch_size), format.x.has_times);
  return batch_size * source.matrix().column_count * cell_bytes(format.format);
}

}  // namespace

SparseBatchFormat sparse_format(const SparseLoaderOptions& options, const SparseSource& source) {
  SparseBatchFormat format{options.format, options.held_out ? source.matrix().matrix_count : 1,
                           entry_format(options, source), entry_format(options, source)};
  // Targets stay as they are; only the input X is normalized.
  format.held_out.normalize = RowNorm::none;
  check_dense_batch(options.format, options.batch_size, source.matrix().column_count, format.x);
  if (options.format == SparseFormat::dense_f16) {
    check_half_values(source.known_magnitude(), format.x);
    if (format.matrix_count > 1) check_half_values(source.known_magnitude(), format.held_out);
  }
  return format;
}

double sparse_buffer_bytes(const SparseBatchFormat& format, const SparseSource& source,
                           std::size_t batch_size) {
  return static_cast<double>(format.matrix_count) *
         static_cast<double>(matrix_bytes(format, source, batch_size));
}

SparseBuffer make_sparse_buffer(const SparseBatchFormat& format, const SparseSource& source,
                                const BatchAllocator& allocator, std::size_t batch_size) {
  SparseBuffer buffer;
  buffer.rows.resize(batch_size);
  buffer.labels.resize(batch_size * source.label_columns());
  for (std::size_t matrix = 0; matrix < format.matrix_count; ++matrix) {
    buffer.matrices.push_back({BatchMemory(allocator, matrix_bytes(format, source, batch_size)), {}});
    SparseMatrixBuffer& made = buffer.matrices.back();
    if (format.format != SparseFormat::csr)
      made.dense.emplace(format.format, batch_size, source.matrix().column_count,
                         source.max_entries(batch_size), made.memory.data());
  }
  return buffer;
}

SparseBatchAssembler::SparseBatchAssembler(const SparseBatchContext& context)
    : context_(context),
      samples_(context.source.chunks(), context.grid, context.cache, context.chunks),
      values_{EntryValues(context.format.x), EntryValues(context.format.held_out)} {
  stored_.reserve(context.source.chunks().max_stored_bytes());
  rows_.reserve(context.chunks.slice_samples);
}

void SparseBatchAssembler::make(const BatchTask& task, std::size_t slot) {
  counts_ = {};
  bytes_ = 0;
  SparseBuffer& buffer = context_.ring[slot];
  const EpochBatches::Batch batch = task.batches.batch(task.index);
  samples_.find(task, batch);
  const std::size_t held = samples_.hold(0, counts_, stored_);
  assert(held == batch.size);
  static_cast<void>(held);
  corrupt_samples_ = samples_.leave_out_corrupt();
  if (corrupt_samples_ != 0) samples_.close_gaps();
  const CopyClock clock;
  show(task, buffer);
  copy_rows(0, buffer.matrices[0], buffer.batch);
  if (buffer.matrices.size() > 1) copy_rows(1, buffer.matrices[1], buffer.batch.held_out);
  clock.add_to(counts_);
  samples_.release();
}

MadeBatch SparseBatchAssembler::complete(const BatchTask& /*task*/, std::size_t /*slot*/) {
  return {samples_.all().size(), bytes_, corrupt_samples_};
}

void SparseBatchAssembler::find_rows(std::size_t matrix) {
  rows_.resize(samples_.all().size());
  for (const BatchSamples::Sample& each : samples_.all())
    DecodedRows(each.decoded, context_.source.matrix(), matrix).prefetch(each.in_chunk);
  for (const BatchSamples::Sample& each : samples_.all())
    rows_[each.at] = DecodedRows(each.decoded, context_.source.matrix(), matrix).row(each.in_chunk);
}

void SparseBatchAssembler::copy_rows(std::size_t matrix, SparseMatrixBuffer& buffer, SparseMatrix& view) {
  find_rows(matrix);
  view.format_ = context_.format.format;
  view.row_count_ = rows_.size();
  view.column_count_ = context_.source.matrix().column_count;
  view.memory_ = buffer.memory.data();
  view.was_written_ = &buffer.was_written;
  view.nnz_ = 0;
  for (const StoredRow& row : rows_) view.nnz_ += row.nnz;
  if (view.nnz_ > context_.source.max_entries(context_.chunks.slice_samples))
    throw Error(ErrorCode::bad_data,
                context_.source.info().path + ": has longer rows than its manifest says");
  if (buffer.dense)
    write_dense(values_[matrix], buffer);
  else
    view.csr_ = write_csr_batch(rows_, values_[matrix], buffer.memory.data());
  bytes_ +=
      buffer.dense ? view.row_count_ * view.column_count_ * cell_bytes(view.format_) : view.csr_.block.size();
}

void SparseBatchAssembler::write_dense(const EntryValues& values, SparseMatrixBuffer& buffer) {
  if (buffer.was_written) buffer.dense->spoil();
  buffer.was_written = false;
  buffer.dense->replace(rows_, values);
}

void SparseBatchAssembler::show(const BatchTask& task, SparseBuffer& buffer) {
  const std::size_t columns = context_.source.label_columns();
  const std::size_t count = samples_.all().size();
  for (const BatchSamples::Sample& each : samples_.all()) {
    buffer.rows[each.at] = samples_.number(each);
    if (columns == 0) continue;
    const std::span<const float> labels = context_.source.labels(buffer.rows[each.at]);
    std::copy(labels.begin(), labels.end(),
              buffer.labels.begin() + static_cast<std::ptrdiff_t>(each.at * columns));
  }
  buffer.batch.rows = std::span(buffer.rows).first(count);
  buffer.batch.labels = std::span(buffer.labels).first(count * columns);
  buffer.batch.epoch = task.epoch;
  buffer.batch.index = task.index;
}

}  // namespace chunkhit
