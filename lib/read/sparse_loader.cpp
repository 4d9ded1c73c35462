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
#include "types/enum_names.h"

namespace chunkhit {
namespace {

/// The rows of a batch are concatenated in their order, so all of their chunks are held at the same time.
EpochReaderSpec reader_spec(const SparseLoaderOptions& options) {
  require_option(std::isfinite(options.scale) && options.scale != 0, "scale: must be finite and not 0");
  EpochReaderSpec spec = epoch_reader_spec(options);
  spec.holds_all = true;
  return spec;
}

}  // namespace

void SparseMatrix::require(SparseFormat format) const {
  if (format_ == format) return;
  throw Error(ErrorCode::usage, "batches are " + name_of(format_) + ", not " + name_of(format) +
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

template class Loader<SparseBatch>;

struct SparseLoader::Rows final : Loader<SparseBatch>::Impl {
  Rows(const std::vector<std::string>& paths, const SparseLoaderOptions& options, const EpochReaderSpec& spec)
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

  [[nodiscard]] BatchCore<SparseBatch>& batches() override { return core; }
  [[nodiscard]] std::uint64_t size() const override { return source.size(); }
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
