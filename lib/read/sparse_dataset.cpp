#include <algorithm>
#include <numeric>
#include <utility>

#include "base/memory.h"
#include "batch/chunk_grid.h"
#include "batch/entry_values.h"
#include "cache/chunk_cache.h"
#include "cache/decoded_rows.h"
#include "chunkhit/sparse.h"
#include "read/residency.h"
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

/// Puts rows, of which row i begins at starts[i], one after the other.
SparseRows in_order(const SparseRows& walked, const std::vector<std::size_t>& starts) {
  SparseRows ordered{walked.indptr, {}, {}};
  ordered.indices.reserve(walked.indices.size());
  ordered.values.reserve(walked.values.size());
  for (std::size_t row = 0; row < starts.size(); ++row) {
    const auto begin = static_cast<std::ptrdiff_t>(starts[row]);
    const auto end = static_cast<std::ptrdiff_t>(begin + walked.indptr[row + 1] - walked.indptr[row]);
    ordered.indices.insert(ordered.indices.end(), walked.indices.begin() + begin,
                           walked.indices.begin() + end);
    ordered.values.insert(ordered.values.end(), walked.values.begin() + begin, walked.values.begin() + end);
  }
  return ordered;
}

}  // namespace

struct SparseDataset::Impl {
  Impl(const std::vector<std::string>& paths, const SparseDatasetOptions& options)
      : source(paths, options.check_hashes, options.memory_bytes),
        grid(source.chunks().sample_counts()),
        plan(plan_residency(source.chunks(), {.residency = options.residency,
                                              .memory_bytes = options.memory_bytes,
                                              .chunks_needed = 1,
                                              .in_order = false})),
        cache(source.chunks(), {plan.residency, options.check_hashes, OnCorrupt::fail, plan.kept_chunks}),
        values(stored_format(source.matrix())) {}

  /// Calls use(at, row) for each of `rows`, in the order of chunks, so that each chunk is asked for once.
  template <class Use>
  void visit(std::span<const std::uint64_t> rows, std::size_t matrix, const Use& use) {
    std::vector<std::size_t> by_row(rows.size());
    std::iota(by_row.begin(), by_row.end(), std::size_t{0});
    std::sort(by_row.begin(), by_row.end(), [&](std::size_t a, std::size_t b) { return rows[a] < rows[b]; });
    ByteBuffer stored;
    ChunkCache::Pin pin;
    std::uint64_t pinned = grid.chunk_count();
    for (const std::size_t at : by_row) {
      const ChunkGrid::Place place = grid.find(rows[at]);
      if (place.chunk != pinned)
        pin = with_memory("read: a chunk needs more memory than can be had: lower memory_bytes",
                          [&] { return cache.acquire(place.chunk, stored); });
      pinned = place.chunk;
      use(at, DecodedRows(pin.samples(), source.matrix(), matrix).row(place.in_chunk));
    }
  }

  SparseSource source;
  ChunkGrid grid;
  ResidencyPlan plan;
  ChunkCache cache;
  EntryValues values;
};

SparseDataset::SparseDataset(const std::string& path, const SparseDatasetOptions& options)
    : SparseDataset(std::vector{path}, options) {}

SparseDataset::SparseDataset(const std::vector<std::string>& paths, const SparseDatasetOptions& options)
    : impl_(with_memory("opening it needs more memory than can be had: lower memory_bytes",
                        [&] { return std::make_unique<Impl>(paths, options); })) {}

SparseDataset::SparseDataset(SparseDataset&&) noexcept = default;
SparseDataset& SparseDataset::operator=(SparseDataset&&) noexcept = default;
SparseDataset::~SparseDataset() = default;

std::uint64_t SparseDataset::size() const { return impl_->source.size(); }
std::uint64_t SparseDataset::column_count() const { return impl_->source.matrix().column_count; }
bool SparseDataset::has_held_out() const { return impl_->source.matrix().matrix_count > 1; }
const PackInfo& SparseDataset::info() const { return impl_->source.info(); }

SparseRows SparseDataset::read(std::span<const std::uint64_t> rows, MatrixName matrix) const {
  for (const std::uint64_t row : rows)
    if (row >= size())
      throw Error(ErrorCode::usage, "read: row " + std::to_string(row) + " of " + std::to_string(size()));
  if (matrix == MatrixName::held_out && !has_held_out())
    throw Error(ErrorCode::usage, "read: the source has no held-out matrix");
  // As the chunks come, then as the rows were asked for: no chunk is decoded twice.
  const auto which = static_cast<std::size_t>(matrix);
  const std::size_t id_bytes = id_bytes_of(impl_->source.matrix());
  SparseRows walked;
  std::vector<std::size_t> starts(rows.size());
  walked.indptr.assign(rows.size() + 1, 0);
  impl_->visit(rows, which, [&](std::size_t at, const StoredRow& row) {
    starts[at] = walked.indices.size();
    walked.indptr[at + 1] = static_cast<std::int64_t>(row.nnz);
    for (std::size_t i = 0; i < row.nnz; ++i) walked.indices.push_back(column_at(row, i, id_bytes));
    walked.values.resize(walked.indices.size());
    impl_->values.calculate(row, std::span(walked.values).subspan(starts[at]));
  });
  std::partial_sum(walked.indptr.begin(), walked.indptr.end(), walked.indptr.begin());
  return std::is_sorted(rows.begin(), rows.end()) ? walked : in_order(walked, starts);
}

std::span<const float> SparseDataset::labels(std::uint64_t row) const {
  if (row >= size())
    throw Error(ErrorCode::usage, "labels: row " + std::to_string(row) + " of " + std::to_string(size()));
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

}  // namespace chunkhit
