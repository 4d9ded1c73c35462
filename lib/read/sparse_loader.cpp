#include "chunkhit/sparse_loader.h"

#include <cmath>
#include <utility>

#include "base/memory.h"
#include "chunkhit/loader.h"
#include "chunkhit/pack_info.h"
#include "read/loader_core.h"
#include "read/sampler_options.h"
#include "read/sparse_batch_assembler.h"
#include "read/sparse_source.h"

namespace chunkhit {
namespace {

/// The rows of a batch are concatenated in their order, so all of their chunks are held at the same time.
EpochReaderSpec reader_spec(const SparseLoaderOptions& options) {
  require_option(std::isfinite(options.scale) && options.scale != 0, "scale: must be finite and not 0");
  EpochReaderSpec spec = epoch_reader_spec(options);
  spec.holds_all = true;
  return spec;
}

const char* form_name(SparseFormat format) {
  switch (format) {
    case SparseFormat::dense_f32:
      return "dense_f32";
    case SparseFormat::dense_f16:
      return "dense_f16";
    case SparseFormat::dense_u8:
      return "dense_u8";
    case SparseFormat::csr:
      break;
  }
  return "csr";
}

}  // namespace

void SparseMatrix::require(SparseFormat format) const {
  if (format_ == format) return;
  throw Error(ErrorCode::usage, std::string("batches are ") + form_name(format_) + ", not " +
                                    form_name(format) +
                                    ": make the loader with .format = SparseFormat::" + form_name(format));
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

struct SparseLoader::Impl {
  Impl(const std::vector<std::string>& paths, const SparseLoaderOptions& options, const EpochReaderSpec& spec)
      : source(paths, options.cache_bytes != 0 ? options.cache_bytes : options.memory_bytes,
               options.times && options.format == SparseFormat::csr),
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

  SparseSource source;
  SparseBatchFormat format;
  LoaderCore<SparseBuffer> core;  // last: its threads use all above
};

SparseLoader::SparseLoader(const std::string& path, const SparseLoaderOptions& options)
    : SparseLoader(std::vector{path}, options) {}

SparseLoader::SparseLoader(const std::vector<std::string>& paths, const SparseLoaderOptions& options)
    : impl_(with_memory(kNoMemory,
                        [&] { return std::make_unique<Impl>(paths, options, reader_spec(options)); })) {}

SparseLoader::SparseLoader(SparseLoader&&) noexcept = default;
SparseLoader& SparseLoader::operator=(SparseLoader&& other) noexcept {
  release();
  impl_ = std::move(other.impl_);
  return *this;
}

void SparseLoader::release() { release_if_forked(impl_); }

SparseLoader::~SparseLoader() { release(); }

SparseLoader::Epoch SparseLoader::epoch(std::uint64_t epoch) {
  impl_->core.reader().begin(epoch);
  return Epoch(*this);
}

bool SparseLoader::wait_for(std::chrono::milliseconds timeout) {
  return impl_->core.reader().wait_for(timeout);
}
const SparseBatch* SparseLoader::next() { return impl_->core.next(); }
std::shared_ptr<const SparseBatch> SparseLoader::retain() const { return impl_->core.retain(); }
std::uint64_t SparseLoader::size() const { return impl_->source.size(); }
std::uint64_t SparseLoader::epoch_samples() const { return impl_->core.reader().epoch_samples(); }
std::uint64_t SparseLoader::column_count() const { return impl_->source.matrix().column_count; }
std::uint64_t SparseLoader::batch_count() const { return impl_->core.reader().batch_count(); }
bool SparseLoader::has_held_out() const { return impl_->format.matrix_count > 1; }
double SparseLoader::value_scale() const { return impl_->source.matrix().scale; }
const PackInfo& SparseLoader::info() const { return impl_->source.info(); }
std::string_view SparseLoader::row_id(std::uint64_t row) const { return impl_->source.row_id(row); }
std::string_view SparseLoader::column_id(std::uint64_t column) const {
  return impl_->source.column_id(column);
}
SparseIds SparseLoader::row_ids() const { return impl_->source.row_ids().all(); }
SparseIds SparseLoader::column_ids() const { return impl_->source.column_ids().all(); }
std::optional<std::uint64_t> SparseLoader::row_of(std::string_view id) const {
  return impl_->source.row_ids().find(id);
}
std::optional<std::uint64_t> SparseLoader::column_of(std::string_view id) const {
  return impl_->source.column_ids().find(id);
}
ColumnValues SparseLoader::item_column(std::string_view name, std::span<const std::uint64_t> columns) const {
  return impl_->source.item_columns().values(name, columns);
}
ColumnValues SparseLoader::user_column(std::string_view name, std::span<const std::uint64_t> rows) const {
  return impl_->source.user_columns().values(name, rows);
}
std::span<const std::uint64_t> SparseLoader::item_counts() const { return impl_->source.item_counts(); }
MixingInfo SparseLoader::mixing() const { return impl_->core.reader().mixing(); }
LoaderStats SparseLoader::stats() const { return impl_->core.stats(); }
void SparseLoader::reset_stats() { impl_->core.reset_stats(); }
std::string SparseLoader::state() const { return impl_->core.reader().state(); }
void SparseLoader::restore(const std::string& state) { impl_->core.reader().restore(state); }

}  // namespace chunkhit
