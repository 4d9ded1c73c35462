#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/random.h"
#include "base/throw_error.h"
#include "chunkhit/sparse_loader.h"

namespace chunkhit {
namespace {

/// A draw of one of the row's own items is repeated up to kTries times; then the exact distribution of the
/// remaining items is used.
constexpr std::uint64_t kTries = 64;

double weight_of(std::uint64_t count, double power) {
  return count == 0 ? 0 : std::pow(static_cast<double>(count), power);
}

/// The items that one matrix has in a row.
struct ItemsOfRow {
  std::span<const std::int32_t> columns;  ///< ascending; or
  const std::uint8_t* cells = nullptr;    ///< a dense row of numbers of
  std::size_t cell_bytes = 0;

  [[nodiscard]] bool has(std::uint32_t item) const {
    if (cell_bytes == 0) return std::ranges::binary_search(columns, static_cast<std::int32_t>(item));
    const std::uint8_t* const cell = cells + item * cell_bytes;
    if (cell_bytes == 1) return *cell != 0;
    // Not 0, of either sign.
    return cell_bytes == 2 ? (load_little<std::uint16_t>(cell) & 0x7fff) != 0
                           : load_little<std::uint32_t>(cell) << 1 != 0;
  }
};

ItemsOfRow row_of(const RowItems& rows, std::size_t at, std::size_t column_count) {
  if (rows.cell_bytes != 0)
    return {.columns = {},
            .cells = rows.cells.data() + at * column_count * rows.cell_bytes,
            .cell_bytes = rows.cell_bytes};
  if (rows.indptr.empty()) return {};
  const auto begin = static_cast<std::size_t>(rows.indptr[at]);
  return {.columns = rows.indices.subspan(begin, static_cast<std::size_t>(rows.indptr[at + 1]) - begin)};
}

/// Throws usage where rows in CSR form do not lie in their arrays, or a row's columns do not ascend.
void check_csr(const std::string& name, const RowItems& rows, std::size_t row_count) {
  if (rows.indptr.size() != row_count + 1 || rows.indptr[0] != 0)
    throw_usage(name + ": " + std::to_string(rows.indptr.size()) + " entries of indptr for " +
                std::to_string(row_count) + " rows, expected one more than rows, from 0 on");
  for (std::size_t at = 0; at < row_count; ++at)
    if (rows.indptr[at + 1] < rows.indptr[at] ||
        static_cast<std::size_t>(rows.indptr[at + 1]) > rows.indices.size())
      throw_usage(name + ": row " + std::to_string(at) + " ends outside of the indices");
  for (std::size_t at = 0; at < row_count; ++at)
    if (!std::ranges::is_sorted(row_of(rows, at, 0).columns))
      throw_usage(name + ": the columns of row " + std::to_string(at) + " do not ascend");
}

void check_rows(const std::string& name, const RowItems& rows, std::size_t row_count,
                std::size_t column_count) {
  if (rows.cell_bytes == 0) {
    if (!rows.indptr.empty()) check_csr(name, rows, row_count);
    return;
  }
  if (rows.cells.size() != row_count * column_count * rows.cell_bytes)
    throw_usage(name + ": " + std::to_string(rows.cells.size() / rows.cell_bytes) + " cells, expected " +
                std::to_string(row_count) + " rows of the sampler's " + std::to_string(column_count) +
                " items");
}

/// Draws an item by the cumulative sums of weights.
std::uint32_t draw_by_sums(const std::vector<double>& sums, std::uint64_t seed, std::uint64_t index) {
  const std::uint64_t bits = random_bits(seed, Purpose::rare_negatives, index);
  const double position = static_cast<double>(bits >> 11) * 0x1p-53 * sums.back();
  // The first sum above `position` is one that its item's weight raised; rounding may put it beyond the last.
  const auto found = std::ranges::upper_bound(sums, std::min(position, std::nextafter(sums.back(), 0.0)));
  return static_cast<std::uint32_t>(found - sums.begin());
}

}  // namespace

/// All items of a row, which are not drawn as its negatives.
struct PopularitySampler::OwnItems {
  ItemsOfRow x;
  ItemsOfRow held_out;
  std::optional<std::uint64_t> row;  ///< for messages
  [[nodiscard]] bool has(std::uint32_t item) const { return x.has(item) || held_out.has(item); }
  [[nodiscard]] std::string name() const { return row ? "row " + std::to_string(*row) : "own"; }
};

RowItems::RowItems(const SparseMatrix& matrix) {
  switch (matrix.format()) {
    case SparseFormat::csr:
      indptr = matrix.csr().indptr;
      indices = matrix.csr().indices;
      return;
    case SparseFormat::dense_f32:
      cells = bytes_of(matrix.dense_f32());
      cell_bytes = sizeof(float);
      return;
    case SparseFormat::dense_f16:
      cells = bytes_of(matrix.dense_f16());
      cell_bytes = sizeof(std::uint16_t);
      return;
    case SparseFormat::dense_u8:
      cells = matrix.dense_u8();
      cell_bytes = 1;
      return;
    case SparseFormat::sequences:
      throw_usage("RowItems: expected csr or a dense format, found sequences; draw_batch takes their batch");
    case SparseFormat::pairs:
      throw_usage("RowItems: expected csr or a dense format, found pairs, whose loader draws `negatives`");
  }
}

// Builds the tables of Vose's alias method: slots below the mean are filled up by those above it.
PopularitySampler::PopularitySampler(std::span<const std::uint64_t> item_counts, double power)
    : keep_(item_counts.size()), other_(item_counts.size()) {
  if (item_counts.size() > INT32_MAX)
    throw Error(ErrorCode::usage, "item_counts: must be at most 2147483647");
  std::vector<double> share(item_counts.size());
  double sum = 0;
  for (const std::uint64_t count : item_counts) sum += weight_of(count, power);
  if (!(sum > 0) || !std::isfinite(sum)) throw Error(ErrorCode::usage, "item_counts: no item can be drawn");
  std::vector<std::uint32_t> small;
  std::vector<std::uint32_t> large;
  for (std::uint32_t item = 0; item < share.size(); ++item) {
    share[item] = weight_of(item_counts[item], power) / sum * static_cast<double>(share.size());
    (share[item] < 1 ? small : large).push_back(item);
  }
  while (!small.empty() && !large.empty()) {
    const std::uint32_t item = small.back();
    small.pop_back();
    keep_[item] = share[item];
    other_[item] = large.back();
    share[large.back()] -= 1 - share[item];
    if (share[large.back()] >= 1) continue;
    small.push_back(large.back());
    large.pop_back();
  }
  // What is left is 1 but for rounding; an item that nobody has must not be drawn even then.
  const auto popular = static_cast<std::uint32_t>(std::max_element(item_counts.begin(), item_counts.end()) -
                                                  item_counts.begin());
  for (const auto* rest : {&small, &large})
    for (const std::uint32_t item : *rest) {
      keep_[item] = item_counts[item] == 0 ? 0 : 1;
      other_[item] = popular;
    }
}

std::uint32_t PopularitySampler::draw_any(std::uint64_t seed, std::uint64_t index) const {
  const std::uint64_t bits = random_bits(seed, Purpose::negatives, index);
  const auto slot = static_cast<std::uint32_t>((bits >> 32) * keep_.size() >> 32);
  const double position = static_cast<double>(bits & 0xffffffff) / 4294967296.0;
  return position < keep_[slot] ? slot : other_[slot];
}

// Returns cumulative weights without the row's own items, for rows that have nearly all popular items.
std::vector<double> PopularitySampler::sum_weights(const OwnItems& own) const {
  std::vector<double> sums(keep_.size());
  for (std::uint32_t slot = 0; slot < keep_.size(); ++slot) {
    if (!own.has(slot)) sums[slot] += keep_[slot];
    if (!own.has(other_[slot])) sums[other_[slot]] += 1 - keep_[slot];
  }
  std::partial_sum(sums.begin(), sums.end(), sums.begin());
  if (!(sums.back() > 0))
    throw Error(ErrorCode::usage, own.name() + ": every item that can be drawn is the row's own");
  return sums;
}

void PopularitySampler::draw_row(const OwnItems& own, std::uint64_t seed, std::uint64_t index,
                                 std::span<std::int32_t> items) const {
  std::vector<double> sums;  // computed only if rejection fails
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::uint64_t first = (index + i) * kTries;
    std::uint64_t attempt = 0;
    std::uint32_t item = draw_any(seed, first);
    while (own.has(item) && ++attempt < kTries) item = draw_any(seed, first + attempt);
    if (attempt == kTries) {
      if (sums.empty()) sums = sum_weights(own);
      item = draw_by_sums(sums, seed, index + i);
    }
    items[i] = static_cast<std::int32_t>(item);
  }
}

void PopularitySampler::draw(std::span<const std::int32_t> own, std::uint64_t seed, std::uint64_t index,
                             std::span<std::int32_t> items) const {
  draw_row({.x = {.columns = own}, .held_out = {}, .row = std::nullopt}, seed, index, items);
}

void PopularitySampler::draw_batch(std::span<const std::uint64_t> rows, const RowItems& x,
                                   const RowItems& held_out, std::uint64_t seed, std::uint64_t epoch,
                                   std::span<std::int32_t> items) const {
  if (rows.empty() ? !items.empty() : items.size() % rows.size() != 0)
    throw Error(ErrorCode::usage, "items: " + std::to_string(items.size()) + " cannot be shared out among " +
                                      std::to_string(rows.size()) + " rows");
  check_rows("x", x, rows.size(), keep_.size());
  check_rows("held_out", held_out, rows.size(), keep_.size());
  const std::uint64_t epoch_seed = random_bits(seed, Purpose::negatives, epoch);
  const std::size_t count = rows.empty() ? 0 : items.size() / rows.size();
  for (std::size_t at = 0; at < rows.size(); ++at)
    draw_row({row_of(x, at, keep_.size()), row_of(held_out, at, keep_.size()), rows[at]},
             random_bits(epoch_seed, Purpose::negatives, rows[at]), 0, items.subspan(at * count, count));
}

namespace {

/// The items of a matrix; those of sequences are sorted copies.
class SortedItems {
 public:
  explicit SortedItems(const SparseMatrix& matrix) {
    if (matrix.format() != SparseFormat::sequences) {
      items_ = RowItems(matrix);
      return;
    }
    const SequenceBatch& sequences = matrix.sequences();
    indptr_.push_back(0);
    for (std::size_t row = 0; row < sequences.lengths.size(); ++row) {
      const auto count = static_cast<std::size_t>(sequences.lengths[row]);
      const auto found = sequences.items.subspan((row + 1) * sequences.length - count, count);
      indices_.insert(indices_.end(), found.begin(), found.end());
      std::sort(indices_.end() - static_cast<std::ptrdiff_t>(count), indices_.end());
      indptr_.push_back(static_cast<std::int32_t>(indices_.size()));
    }
    items_.indptr = indptr_;
    items_.indices = indices_;
  }
  SortedItems(const SortedItems&) = delete;
  SortedItems& operator=(const SortedItems&) = delete;
  [[nodiscard]] const RowItems& items() const { return items_; }

 private:
  std::vector<std::int32_t> indptr_;
  std::vector<std::int32_t> indices_;
  RowItems items_;
};

}  // namespace

void PopularitySampler::draw_batch(const SparseBatch& batch, std::uint64_t seed,
                                   std::span<std::int32_t> items) const {
  const SortedItems x(batch);
  const SortedItems held_out(batch.held_out);
  draw_batch(batch.rows, x.items(), batch.held_out.row_count() == 0 ? RowItems() : held_out.items(), seed,
             batch.epoch, items);
}

}  // namespace chunkhit
