// Rows of matrices in memory: what a row block becomes when its chunk is decoded.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "chunk/row_block.h"
#include "types/csr_rows.h"

namespace chunkhit {

/// Bytes of a column in memory: 2 where all columns fit, else 4.
[[nodiscard]] constexpr std::size_t id_bytes_of(const MatrixShape& shape) {
  return shape.column_count <= std::size_t{1} << 16 ? 2 : 4;
}

/// The most entries that a block of `row_count` rows and `raw_bytes` has: each has at least a byte of the
/// block beside its value and its time.
[[nodiscard]] std::uint64_t max_block_entries(const MatrixShape& shape, std::uint64_t row_count,
                                              std::uint64_t raw_bytes);

/// The most bytes that such a block takes once it is decoded, with its times or without.
[[nodiscard]] std::uint64_t max_decoded_bytes(const MatrixShape& shape, std::uint64_t row_count,
                                              std::uint64_t raw_bytes, bool with_times);

/// Decodes a row block into `rows`, max_decoded_bytes of it, 8-byte aligned: for each matrix where its four
/// arrays begin (u64 each, from the begin of `rows`), then the arrays: u64 ends of the rows, columns, values
/// as stored, and times where they are asked for; entries in the order that is asked for. Throws bad_data; a
/// block must have `row_count` rows.
void decode_rows_to_memory(Bytes raw, const MatrixShape& shape, std::uint64_t row_count, RowArrays arrays,
                           MutableBytes rows);

/// Looks at one matrix of decoded rows.
class DecodedRows {
 public:
  DecodedRows(const std::uint8_t* rows, const MatrixShape& shape, std::size_t matrix)
      : id_bytes_(id_bytes_of(shape)), value_bytes_(value_bytes(shape.value_type)) {
    const std::uint8_t* const starts = rows + matrix * 4 * sizeof(std::uint64_t);
    row_ends_ = rows + load_little<std::uint64_t>(starts);
    ids_ = rows + load_little<std::uint64_t>(starts + 8);
    values_ = value_bytes_ == 0 ? nullptr : rows + load_little<std::uint64_t>(starts + 16);
    const auto times_at = load_little<std::uint64_t>(starts + 24);
    times_ = times_at == 0 ? nullptr : reinterpret_cast<const std::int64_t*>(rows + times_at);
  }
  /// Prefetches the memory that holds a row's location.
  void prefetch(std::size_t index) const { __builtin_prefetch(row_ends_ + index * sizeof(std::uint64_t)); }
  /// Finds the row of an entry among `row_count` rows; row_count for an entry behind them.
  [[nodiscard]] std::size_t find_row(std::uint64_t entry, std::size_t row_count) const {
    std::size_t first = 0;
    for (std::size_t left = row_count; left > 0;) {
      const std::size_t half = left / 2;
      const bool is_before = end_of(first + half) <= entry;
      first = is_before ? first + half + 1 : first;
      left = is_before ? left - half - 1 : half;
    }
    return first;
  }
  /// How many entries the rows before this one have.
  [[nodiscard]] std::uint64_t first_entry(std::size_t index) const {
    return index == 0 ? 0 : end_of(index - 1);
  }
  [[nodiscard]] StoredRow row(std::size_t index) const {
    const std::uint64_t begin = first_entry(index);
    return {ids_ + begin * id_bytes_, values_ == nullptr ? nullptr : values_ + begin * value_bytes_,
            static_cast<std::size_t>(end_of(index) - begin), times_ == nullptr ? nullptr : times_ + begin};
  }

 private:
  [[nodiscard]] std::uint64_t end_of(std::size_t index) const {
    return load_little<std::uint64_t>(row_ends_ + index * sizeof(std::uint64_t));
  }
  std::size_t id_bytes_;
  std::size_t value_bytes_;
  const std::uint8_t* row_ends_;
  const std::uint8_t* ids_;
  const std::uint8_t* values_;
  const std::int64_t* times_;  // null: not decoded
};

}  // namespace chunkhit
