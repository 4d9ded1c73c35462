#include <algorithm>
#include <numeric>

#include "base/throw_error.h"
#include "batch/sparse_values.h"
#include "cache/decoded_rows.h"
#include "chunkhit/dataset.h"
#include "chunkhit/pack_info.h"
#include "chunkhit/sparse_loader.h"
#include "read/sample_reader.h"
#include "read/sparse_source.h"

namespace chunkhit {
namespace {

EntryFormat stored_format(const MatrixShape& shape) {
  return {.id_bytes = id_bytes_of(shape), .value_type = shape.value_type, .stored_scale = shape.scale};
}

std::int32_t column_at(const StoredRow& row, std::size_t entry, std::size_t id_bytes) {
  const std::uint8_t* const id = row.ids + entry * id_bytes;
  return static_cast<std::int32_t>(id_bytes == 2 ? load_little<std::uint16_t>(id)
                                                 : load_little<std::uint32_t>(id));
}

/// Reorders rows from the order of chunks to the order asked for; row i begins at starts[i].
SparseRows in_order(const SparseRows& walked, const std::vector<std::size_t>& starts) {
  SparseRows ordered{walked.indptr, {}, {}, {}};
  const auto reorder = [&](const auto& from, auto& to) {
    to.reserve(from.size());
    for (std::size_t row = 0; row < starts.size() && !from.empty(); ++row) {
      const auto begin = from.begin() + static_cast<std::ptrdiff_t>(starts[row]);
      to.insert(to.end(), begin, begin + walked.indptr[row + 1] - walked.indptr[row]);
    }
  };
  reorder(walked.indices, ordered.indices);
  reorder(walked.values, ordered.values);
  reorder(walked.times, ordered.times);
  return ordered;
}

}  // namespace

struct SparseDataset::Impl {
  Impl(const std::vector<std::string>& paths, const SparseDatasetOptions& options)
      : source(paths, options.cache_bytes, {.times = true, .by_time = options.by_time}),
        reader(source.chunks(), options),
        values(stored_format(source.matrix())) {}

  SparseSource source;
  SampleReader reader;
  EntryValues values;
};

SparseDataset::SparseDataset(const std::string& path, const SparseDatasetOptions& options)
    : SparseDataset(std::vector{path}, options) {}

SparseDataset::SparseDataset(const std::vector<std::string>& paths, const SparseDatasetOptions& options)
    : impl_(with_memory(kNoDatasetMemory, [&] { return std::make_unique<Impl>(paths, options); })) {}

SparseDataset::SparseDataset(SparseDataset&&) noexcept = default;
SparseDataset& SparseDataset::operator=(SparseDataset&&) noexcept = default;
SparseDataset::~SparseDataset() = default;

std::uint64_t SparseDataset::size() const { return impl_->source.size(); }
std::uint64_t SparseDataset::column_count() const { return impl_->source.matrix().column_count; }
bool SparseDataset::has_held_out() const { return impl_->source.matrix().matrix_count > 1; }
const PackInfo& SparseDataset::info() const { return impl_->source.info(); }

SparseRows SparseDataset::read(std::span<const std::uint64_t> rows, MatrixName matrix) const {
  for (const std::uint64_t row : rows) require_below("read: row", row, size());
  if (matrix == MatrixName::held_out && !has_held_out())
    throw_usage("read: the source has no held-out matrix");
  // Rows are read chunk by chunk, so that no chunk is decoded twice, and reordered at the end.
  const auto which = static_cast<std::size_t>(matrix);
  const std::size_t id_bytes = id_bytes_of(impl_->source.matrix());
  SparseRows walked;
  std::vector<std::size_t> starts(rows.size());
  walked.indptr.assign(rows.size() + 1, 0);
  impl_->reader.visit(rows, [&](std::size_t at, ChunkGrid::Location location, HeldChunk chunk) {
    const StoredRow row = DecodedRows(chunk.samples, impl_->source.matrix(), which).row(location.in_chunk);
    starts[at] = walked.indices.size();
    walked.indptr[at + 1] = static_cast<std::int64_t>(row.nnz);
    for (std::size_t i = 0; i < row.nnz; ++i) walked.indices.push_back(column_at(row, i, id_bytes));
    walked.values.resize(walked.indices.size());
    impl_->values.calculate(row, std::span(walked.values).subspan(starts[at]));
    if (row.times != nullptr) walked.times.insert(walked.times.end(), row.times, row.times + row.nnz);
  });
  std::partial_sum(walked.indptr.begin(), walked.indptr.end(), walked.indptr.begin());
  return std::is_sorted(rows.begin(), rows.end()) ? walked : in_order(walked, starts);
}

std::span<const float> SparseDataset::labels(std::uint64_t row) const {
  require_below("labels: row", row, size());
  return impl_->source.labels(row);
}

std::string_view SparseDataset::row_id(std::uint64_t row) const { return impl_->source.row_id(row); }
std::string_view SparseDataset::column_id(std::uint64_t column) const {
  return impl_->source.column_id(column);
}
SparseIds SparseDataset::row_ids() const { return impl_->source.row_ids().all(); }
SparseIds SparseDataset::column_ids() const { return impl_->source.column_ids().all(); }
std::optional<std::uint64_t> SparseDataset::row_of(std::string_view id) const {
  return impl_->source.row_ids().find(id);
}
std::optional<std::uint64_t> SparseDataset::column_of(std::string_view id) const {
  return impl_->source.column_ids().find(id);
}
ColumnValues SparseDataset::item_column(std::string_view name, std::span<const std::uint64_t> columns) const {
  return impl_->source.item_columns().values(name, columns);
}
ColumnValues SparseDataset::user_column(std::string_view name, std::span<const std::uint64_t> rows) const {
  return impl_->source.user_columns().values(name, rows);
}

}  // namespace chunkhit
