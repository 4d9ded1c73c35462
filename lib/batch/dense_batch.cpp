#include "batch/dense_batch.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <string>

#include "base/bytes.h"
#include "base/words.h"
#include "chunkhit/error.h"

namespace chunkhit {
namespace {

/// Widens the columns of a row.
void read_ids(const StoredRow& row, std::size_t id_bytes, std::vector<std::uint32_t>& ids) {
  ids.resize(row.nnz);
  if (id_bytes == sizeof(std::uint32_t)) {
    if (row.nnz != 0) std::memcpy(ids.data(), row.ids, row.nnz * id_bytes);
    return;
  }
  for (std::size_t i = 0; i < row.nnz; ++i) ids[i] = load_little<std::uint16_t>(row.ids + i * id_bytes);
}

}  // namespace

std::size_t cell_bytes(SparseAs as) {
  switch (as) {
    case SparseAs::dense_f32:
      return 4;
    case SparseAs::dense_f16:
      return 2;
    case SparseAs::dense_u8:
      return 1;
    case SparseAs::csr:
      break;
  }
  return 0;
}

void check_dense_batch(SparseAs as, std::uint64_t rows, std::uint64_t columns, const EntryFormat& format) {
  if (as == SparseAs::dense_u8) {
    if (format.value_type != ValueType::u8 && format.value_type != ValueType::none)
      throw Error(ErrorCode::usage,
                  "as: dense_u8 needs values that are stored as u8, these are " +
                      std::string(kValueTypeNames[static_cast<std::size_t>(format.value_type)]) +
                      "; take dense_f32");
    if (format.scale != 1 || format.normalize != RowNorm::none)
      throw Error(ErrorCode::usage,
                  "as: dense_u8 hands out numbers as they are stored; scale and normalize need dense_f32");
  }
  const std::uint64_t row_bytes = columns * cell_bytes(as);
  if (row_bytes == 0 || rows <= kMostDenseBatchBytes / row_bytes) return;
  throw Error(ErrorCode::usage, "as: a dense batch of " + count_text(rows, "row") + " and " +
                                    count_text(columns, "column") + " has " +
                                    bytes_text(static_cast<double>(rows) * static_cast<double>(row_bytes)) +
                                    ", at most 1 GiB is handed out; take csr, or a smaller batch_size");
}

void DenseBatch::restore_zeros() {
  std::memset(cells_, 0, set_.size() * columns_ * cell_bytes(as_));
  for (auto& columns : set_) columns.clear();
  is_spoiled_ = false;
}

void DenseBatch::clear(std::size_t at) {
  if (is_spoiled_) restore_zeros();
  const std::size_t bytes = cell_bytes(as_);
  std::uint8_t* const row = cells_ + at * columns_ * bytes;
  std::vector<std::uint32_t>& columns = set_[at];
  switch (as_) {
    case SparseAs::dense_f32:
      for (const std::uint32_t column : columns) reinterpret_cast<float*>(row)[column] = 0;
      break;
    case SparseAs::dense_f16:
      for (const std::uint32_t column : columns) reinterpret_cast<std::uint16_t*>(row)[column] = 0;
      break;
    case SparseAs::dense_u8:
    case SparseAs::csr:
      for (const std::uint32_t column : columns) row[column] = 0;
  }
  columns.clear();
}

template <class Cell, class Convert>
void DenseBatch::scatter(std::size_t at, const StoredRow& row, std::span<const float> values,
                         const Convert& convert) {
  Cell* const cells = reinterpret_cast<Cell*>(cells_) + at * columns_;
  const std::vector<std::uint32_t>& columns = set_[at];
  for (std::size_t i = 0; i < row.nnz; ++i) cells[columns[i]] = convert(values, i);
}

void DenseBatch::write(std::size_t at, const StoredRow& row, const EntryValues& values) {
  clear(at);
  read_ids(row, values.format().id_bytes, set_[at]);
  if (as_ == SparseAs::dense_u8) {
    const std::uint8_t* const stored = values.format().value_type == ValueType::u8 ? row.values : nullptr;
    return scatter<std::uint8_t>(at, row, {}, [stored](std::span<const float>, std::size_t i) {
      return stored != nullptr ? stored[i] : std::uint8_t{1};
    });
  }
  if (values_.size() < row.nnz) values_.resize(row.nnz);
  const std::span<float> numbers = std::span(values_).first(row.nnz);
  values.calculate(row, numbers);
  if (as_ == SparseAs::dense_f32)
    scatter<float>(at, row, numbers, [](std::span<const float> from, std::size_t i) { return from[i]; });
  else
    scatter<std::uint16_t>(at, row, numbers,
                           [](std::span<const float> from, std::size_t i) { return half_float(from[i]); });
}

bool DenseBatch::is_clean() const {
  const std::size_t bytes = cell_bytes(as_);
  for (std::size_t at = 0; at < set_.size(); ++at) {
    const std::uint8_t* const row = cells_ + at * columns_ * bytes;
    std::size_t next = 0;
    for (std::size_t column = 0; column < columns_; ++column) {
      const bool was_set = next < set_[at].size() && set_[at][next] == column;
      next += was_set ? 1 : 0;
      const auto is_zero = [](std::uint8_t byte) { return byte == 0; };
      if (!was_set && !std::all_of(row + column * bytes, row + (column + 1) * bytes, is_zero)) return false;
    }
  }
  return true;
}

}  // namespace chunkhit
