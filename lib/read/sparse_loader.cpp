#include "chunkhit/sparse_loader.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "augment/random_crop.h"
#include "base/resources.h"
#include "base/throw_error.h"
#include "batch/pairs.h"
#include "batch/sequences.h"
#include "batch/sparse_values.h"
#include "cache/decoded_rows.h"
#include "chunkhit/loader.h"
#include "chunkhit/pack_info.h"
#include "read/batch_ring.h"
#include "read/loader_core.h"
#include "read/loader_stats.h"
#include "read/sparse_source.h"
#include "types/enum_names.h"

namespace chunkhit {

/// What a loader's batches are.
struct SparseBatchFormat {
  SparseFormat format = SparseFormat::dense_f32;
  std::size_t matrix_count = 1;  ///< 2: with the held-out matrix
  EntryFormat x;
  EntryFormat held_out;                       ///< never normalized
  std::array<SequenceFormat, 2> sequences{};  ///< of X and held_out
  PairFormat pairs{};
  bool excludes_held_out = false;  ///< pairs: from the negatives
  std::uint32_t echo = 1;
};

/// The memory of one matrix of a batch, used again and again.
struct SparseMatrixBuffer {
  BatchMemory memory;
  std::optional<DenseBatch> dense;  ///< none for CSR, sequences and pairs
  bool was_written = false;         ///< by the caller
};

/// A batch being made or waiting to be used.
struct SparseBuffer {
  std::vector<SparseMatrixBuffer> matrices;  ///< X; held_out
  std::vector<std::uint64_t> rows;
  std::vector<float> labels;
  SparseBatch batch;  ///< views of the above
};

/// What all assemblers of a loader share.
struct SparseBatchContext {
  const SparseSource& source;
  const ChunkGrid& grid;
  ChunkCache& cache;
  const SparseBatchFormat& format;
  const BatchRing<SparseBuffer>& ring;
  BatchChunksSpec chunks;
};

class SparseBatchAssembler final : public BatchAssembler {
 public:
  explicit SparseBatchAssembler(const SparseBatchContext& context);
  /// Rows lie one behind the other, so a batch is one slice.
  void make(const BatchTask& task, std::size_t slot) override;
  [[nodiscard]] MadeBatch complete(const BatchTask& task, std::size_t slot) override;

 private:
  void find_rows(std::size_t matrix);
  void find_pairs(const BatchTask& task, const EpochBatches::Batch& batch, SparseBuffer& made);
  void copy_pairs(SparseBuffer& made);
  void copy_rows(std::size_t matrix, SparseBuffer& made, SparseMatrix& view);
  void write_dense(const EntryValues& values, SparseMatrixBuffer& buffer);
  void show(const BatchTask& task, SparseBuffer& buffer);

  SparseBatchContext context_;
  BatchSamples samples_;
  std::array<EntryValues, 2> values_;
  PairWriter pair_writer_;
  std::vector<StoredRow> rows_;   // of one matrix, in the batch's order
  std::vector<RatedPair> pairs_;  // the same, of pairs
  /// The first row and the first rating of a chunk.
  struct ChunkStart {
    std::uint64_t row;
    std::uint64_t rating;
  };
  std::vector<ChunkStart> chunks_;     // and the number of all; of pairs
  std::uint64_t bytes_ = 0;            // that the batch in work hands out
  std::uint64_t corrupt_samples_ = 0;  // left out of it
};

namespace {

EntryFormat entry_format(const SparseLoaderOptions& options, const SparseSource& source) {
  const MatrixShape& shape = source.matrix();
  return {.id_bytes = id_bytes_of(shape),
          .value_type = shape.value_type,
          .stored_scale = shape.scale,
          .binarize = options.binarize,
          .scale = options.scale,
          .normalize = options.normalize,
          .has_times = source.chunks().row_arrays().times,
          .has_repeats = shape.has_repeats};
}

SequenceFormat sequence_format(const SparseLoaderOptions& options, const SparseSource& source,
                               SequenceCut cut) {
  return {.length = options.length,
          .cut = cut,
          .seed = options.seed,
          .column_count = source.matrix().column_count,
          .id_bytes = id_bytes_of(source.matrix()),
          .has_times = source.chunks().row_arrays().times};
}

/// Negatives are not drawn by the counts of an item where all are drawn alike.
PairFormat pair_format(const SparseLoaderOptions& options, const SparseSource& source) {
  PairFormat format{.negatives = options.negatives,
                    .seed = options.seed,
                    .column_count = source.matrix().column_count,
                    .id_bytes = id_bytes_of(source.matrix()),
                    .has_repeats = source.matrix().has_repeats,
                    .has_times = source.chunks().row_arrays().times,
                    .sampler = nullptr};
  if (options.negatives == 0 || options.negatives_power == 0) return format;
  if (source.item_counts().empty())
    throw_usage("`negatives_power`: " + source.info().path +
                ": a single part does not know how often items were rated; open its pack, or take 0");
  format.sampler = std::make_shared<const PopularitySampler>(source.item_counts(), options.negatives_power);
  return format;
}

/// CSR buffers are sized for the longest rows, so that no batch needs to grow them.
std::size_t matrix_bytes(const SparseBatchFormat& format, const SparseSource& source,
                         std::size_t batch_size) {
  if (format.format == SparseFormat::csr)
    return csr_block_bytes(batch_size, source.max_entries(batch_size), format.x.has_times);
  if (format.format == SparseFormat::sequences) return sequence_block_bytes(batch_size, format.sequences[0]);
  if (format.format == SparseFormat::pairs) return pair_block_bytes(batch_size, format.pairs);
  return batch_size * source.matrix().column_count * cell_bytes(format.format);
}

/// Returns what batches will be; throws usage when they cannot be that.
SparseBatchFormat sparse_format(const SparseLoaderOptions& options, const SparseSource& source) {
  SparseBatchFormat format{
      options.format,
      options.held_out && options.format != SparseFormat::pairs ? source.matrix().matrix_count : 1,
      entry_format(options, source),
      entry_format(options, source),
      {sequence_format(options, source, options.cut), sequence_format(options, source, SequenceCut::last)},
      {},
      options.held_out && options.negatives != 0 && source.matrix().matrix_count > 1,
      options.echo};
  if (options.format == SparseFormat::pairs) format.pairs = pair_format(options, source);
  // Targets stay as they are; only the input X is normalized.
  format.held_out.normalize = RowNorm::none;
  check_dense_batch(options.format, options.batch_size, source.matrix().column_count, format.x);
  if (options.format == SparseFormat::dense_f16) {
    check_half_values(source.known_magnitude(), format.x);
    if (format.matrix_count > 1) check_half_values(source.known_magnitude(), format.held_out);
  }
  return format;
}

/// What the matrices of a batch take.
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
    if (cell_bytes(format.format) != 0)
      made.dense.emplace(format.format, batch_size, source.matrix().column_count,
                         source.max_entries(batch_size), made.memory.data());
  }
  return buffer;
}

/// The rows of a batch are concatenated in their order, so all of their chunks are held at the same time.
EpochReaderSpec reader_spec(const SparseLoaderOptions& options) {
  require_option(std::isfinite(options.scale) && options.scale != 0, "scale: must be finite and not 0");
  require_option(options.length != 0, "length: must be at least 1");
  require_option(options.format != SparseFormat::sequences ||
                     (!options.binarize && options.scale == 1 && options.normalize == RowNorm::none),
                 "format: sequences have no values; binarize, scale and normalize need another one");
  const bool are_pairs = options.format == SparseFormat::pairs;
  require_option(options.negatives_power >= 0 && std::isfinite(options.negatives_power),
                 "negatives_power: must be finite and at least 0");
  require_option(are_pairs || (options.negatives == 0 && options.negatives_power == 0),
                 "negatives: are drawn for format pairs; PopularitySampler draws them for rows");
  require_option(!are_pairs || options.normalize == RowNorm::none,
                 "format: pairs are no rows, which normalize divides; take another format");
  const SparseLoaderOptions defaults;
  require_option(are_pairs || !options.pair_times, "pair_times: for format pairs; times is for the others");
  require_option(!are_pairs || (options.length == defaults.length && options.cut == defaults.cut),
                 "format: pairs are not cut; length and cut belong to sequences");
  EpochReaderSpec spec = epoch_reader_spec(options);
  spec.holds_all = true;
  return spec;
}

}  // namespace

SparseBatchAssembler::SparseBatchAssembler(const SparseBatchContext& context)
    : context_(context),
      samples_(context.source.chunks(), context.grid, context.cache, context.chunks),
      values_{EntryValues(context.format.x), EntryValues(context.format.held_out)},
      pair_writer_(context.format.pairs, context.format.x) {
  stored_.reserve(context.source.chunks().max_stored_bytes());
  rows_.reserve(context.chunks.slice_samples);
  if (context.format.format != SparseFormat::pairs) return;
  pairs_.reserve(context.chunks.slice_samples);
  const ChunkSet& chunks = context.source.chunks();
  for (std::size_t chunk = 0; chunk < chunks.chunk_count(); ++chunk)
    chunks_.push_back({chunks.first_sample(chunks.find(chunk)), context.grid.first_sample(chunk)});
  chunks_.push_back({chunks.sample_count(), chunks.epoch_count()});
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
  if (context_.format.format == SparseFormat::pairs) {
    find_pairs(task, batch, buffer);
    show(task, buffer);
    copy_pairs(buffer);
  } else {
    for (const BatchSamples::Sample& each : samples_.all()) buffer.rows[each.at] = samples_.number(each);
    show(task, buffer);
    copy_rows(0, buffer, buffer.batch);
    if (buffer.matrices.size() > 1) copy_rows(1, buffer, buffer.batch.held_out);
  }
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

void SparseBatchAssembler::copy_rows(std::size_t matrix, SparseBuffer& made, SparseMatrix& view) {
  SparseMatrixBuffer& buffer = made.matrices[matrix];
  find_rows(matrix);
  view.format_ = context_.format.format;
  view.row_count_ = rows_.size();
  view.column_count_ = context_.source.matrix().column_count;
  view.memory_ = buffer.memory.data();
  view.was_written_ = &buffer.was_written;
  view.nnz_ = 0;
  for (const StoredRow& row : rows_) view.nnz_ += row.nnz;
  if (view.nnz_ > context_.source.max_entries(context_.chunks.slice_samples))
    throw_bad_data(context_.source.info().path + ": has longer rows than its manifest says");
  if (view.format_ == SparseFormat::sequences)
    view.sequences_ = write_sequences(rows_, made.batch.rows, made.batch.epoch,
                                      context_.format.sequences[matrix], buffer.memory.data());
  else if (buffer.dense)
    write_dense(values_[matrix], buffer);
  else
    view.csr_ = write_csr_batch(rows_, values_[matrix], buffer.memory.data());
  bytes_ += buffer.dense ? view.row_count_ * view.column_count_ * cell_bytes(view.format_)
                         : view.csr_.block.size() + view.sequences_.block.size();
}

/// Finds the row of each rating, whose number in its chunk is that of an entry.
void SparseBatchAssembler::find_pairs(const BatchTask& task, const EpochBatches::Batch& batch,
                                      SparseBuffer& made) {
  const SparseBatchFormat& format = context_.format;
  const MatrixShape& shape = context_.source.matrix();
  pairs_.resize(samples_.all().size());
  for (const BatchSamples::Sample& each : samples_.all()) {
    const DecodedRows x(each.decoded, shape, 0);
    const ChunkStart& start = chunks_[each.chunk];
    const std::uint64_t row_count = chunks_[each.chunk + 1].row - start.row;
    const std::size_t row = x.find_row(each.in_chunk, row_count);
    if (row == row_count)
      throw_bad_data(context_.source.info().path + ": has fewer ratings than a chunk's header says");
    RatedPair& pair = pairs_[each.at];
    pair.row = x.row(row);
    pair.entry = each.in_chunk - x.first_entry(row);
    pair.held_out = format.excludes_held_out ? DecodedRows(each.decoded, shape, 1).row(row) : StoredRow();
    if (format.pairs.negatives != 0)
      pair.use = index_of(SampleUse{format.pairs.seed, task.epoch, start.rating + each.in_chunk,
                                    batch.pass + format.echo * each.repeat});
    made.rows[each.at] = start.row + row;
  }
}

void SparseBatchAssembler::copy_pairs(SparseBuffer& made) {
  SparseMatrix& view = made.batch;
  view.format_ = SparseFormat::pairs;
  view.row_count_ = view.nnz_ = pairs_.size();
  view.column_count_ = context_.source.matrix().column_count;
  view.memory_ = made.matrices[0].memory.data();
  view.pairs_ = pair_writer_.write(pairs_, made.batch.rows, view.memory_);
  bytes_ += view.pairs_.block.size();
}

void SparseBatchAssembler::write_dense(const EntryValues& values, SparseMatrixBuffer& buffer) {
  if (buffer.was_written) buffer.dense->spoil();
  buffer.was_written = false;
  buffer.dense->replace(rows_, values);
}

void SparseBatchAssembler::show(const BatchTask& task, SparseBuffer& buffer) {
  const std::size_t columns = context_.source.label_columns();
  const std::size_t count = samples_.all().size();
  for (std::size_t at = 0; columns != 0 && at < count; ++at) {
    const std::span<const float> labels = context_.source.labels(buffer.rows[at]);
    std::copy(labels.begin(), labels.end(),
              buffer.labels.begin() + static_cast<std::ptrdiff_t>(at * columns));
  }
  buffer.batch.rows = std::span(buffer.rows).first(count);
  buffer.batch.labels = std::span(buffer.labels).first(count * columns);
  buffer.batch.epoch = task.epoch;
  buffer.batch.index = task.index;
}

void SparseMatrix::require(SparseFormat format) const {
  if (format_ == format) return;
  throw_usage("batches are " + name_of(format_) + ", not " + name_of(format) +
              ": make the loader with .format = SparseFormat::" + name_of(format));
}

std::span<const float> SparseMatrix::dense_f32() const {
  require(SparseFormat::dense_f32);
  return {reinterpret_cast<const float*>(memory_), row_count_ * column_count_};
}

std::span<const std::uint16_t> SparseMatrix::dense_f16() const {
  require(SparseFormat::dense_f16);
  return {reinterpret_cast<const std::uint16_t*>(memory_), row_count_ * column_count_};
}

std::span<const std::uint8_t> SparseMatrix::dense_u8() const {
  require(SparseFormat::dense_u8);
  return {memory_, row_count_ * column_count_};
}

template <class Cell>
std::span<Cell> SparseMatrix::writable_cells(SparseFormat format) const {
  require(format);
  if (was_written_ != nullptr) *was_written_ = true;
  return {reinterpret_cast<Cell*>(memory_), row_count_ * column_count_};
}

std::span<float> SparseMatrix::writable_dense_f32() const {
  return writable_cells<float>(SparseFormat::dense_f32);
}

std::span<std::uint16_t> SparseMatrix::writable_dense_f16() const {
  return writable_cells<std::uint16_t>(SparseFormat::dense_f16);
}

std::span<std::uint8_t> SparseMatrix::writable_dense_u8() const {
  return writable_cells<std::uint8_t>(SparseFormat::dense_u8);
}

const CsrBatch& SparseMatrix::csr() const {
  require(SparseFormat::csr);
  return csr_;
}

const SequenceBatch& SparseMatrix::sequences() const {
  require(SparseFormat::sequences);
  return sequences_;
}

const PairBatch& SparseMatrix::pairs() const {
  require(SparseFormat::pairs);
  return pairs_;
}

template class Loader<SparseBatch>;

namespace {

/// Times come with rows whose entries are served one by one.
RowArrays row_arrays(const SparseLoaderOptions& options) {
  const bool is_sequences = options.format == SparseFormat::sequences;
  if (options.format == SparseFormat::pairs) return {options.pair_times, false};
  return {options.times && (is_sequences || options.format == SparseFormat::csr), is_sequences};
}

}  // namespace

struct SparseLoader::Rows final : Loader<SparseBatch>::Impl {
  Rows(const std::vector<std::string>& paths, const SparseLoaderOptions& options, const EpochReaderSpec& spec)
      : source(paths, options.cache_bytes != 0 ? options.cache_bytes : options.memory_bytes,
               row_arrays(options), options.format == SparseFormat::pairs),
        format(sparse_format(options, source)),
        core(source.chunks(), spec, sampling_spec(options, source),
             sparse_buffer_bytes(format, source, spec.batches.batch_size),
             [this, allocator = options.allocator, size = spec.batches.batch_size] {
               return make_sparse_buffer(format, source, allocator, size);
             }) {
    core.reader().set_assembler([this] {
      EpochReader& reader = core.reader();
      return std::make_unique<SparseBatchAssembler>(SparseBatchContext{
          source, reader.grid(), reader.cache(), format, core.ring(), reader.batch_chunks()});
    });
  }

  [[nodiscard]] BatchCore<SparseBatch>& batches() override { return core; }
  [[nodiscard]] std::uint64_t size() const override { return source.chunks().epoch_count(); }
  [[nodiscard]] const PackInfo& info() const override { return source.info(); }

  SparseSource source;
  SparseBatchFormat format;
  LoaderCore<SparseBuffer> core;  // last: its threads use all above
};

SparseLoader::SparseLoader(const std::string& path, const SparseLoaderOptions& options)
    : SparseLoader(std::vector{path}, options) {}

SparseLoader::SparseLoader(const std::vector<std::string>& paths, const SparseLoaderOptions& options)
    : Loader(with_memory(kNoMemory,
                         [&] { return std::make_unique<Rows>(paths, options, reader_spec(options)); })) {}

const SparseLoader::Rows& SparseLoader::rows() const { return static_cast<const Rows&>(*impl_); }
std::uint64_t SparseLoader::column_count() const { return rows().source.matrix().column_count; }
bool SparseLoader::has_held_out() const { return rows().format.matrix_count > 1; }
double SparseLoader::value_scale() const { return rows().source.matrix().scale; }
std::string_view SparseLoader::row_id(std::uint64_t row) const { return rows().source.row_id(row); }
std::string_view SparseLoader::column_id(std::uint64_t column) const {
  return rows().source.column_id(column);
}
SparseIds SparseLoader::row_ids() const { return rows().source.row_ids().all(); }
SparseIds SparseLoader::column_ids() const { return rows().source.column_ids().all(); }
std::optional<std::uint64_t> SparseLoader::row_of(std::string_view id) const {
  return rows().source.row_ids().find(id);
}
std::optional<std::uint64_t> SparseLoader::column_of(std::string_view id) const {
  return rows().source.column_ids().find(id);
}
ColumnValues SparseLoader::item_column(std::string_view name, std::span<const std::uint64_t> columns) const {
  return rows().source.item_columns().values(name, columns);
}
ColumnValues SparseLoader::user_column(std::string_view name, std::span<const std::uint64_t> users) const {
  return rows().source.user_columns().values(name, users);
}
std::span<const std::uint64_t> SparseLoader::item_counts() const { return rows().source.item_counts(); }

}  // namespace chunkhit
