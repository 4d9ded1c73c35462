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

/// The most bytes that a block of `row_count` rows and `raw_bytes` takes once it is decoded: an entry has at
/// least a byte of the block beside its value.
[[nodiscard]] std::uint64_t max_decoded_bytes(const MatrixShape& shape, std::uint64_t row_count,
                                              std::uint64_t raw_bytes);

/// Decodes a row block into `rows`, max_decoded_bytes of it, 8-byte aligned: for each matrix where its three
/// arrays begin (u64 each, from the begin of `rows`), then the arrays: u64 ends of the rows, columns, values
/// as stored. Throws bad_data; a block must have `row_count` rows.
void decode_rows_to_memory(Bytes raw, const MatrixShape& shape, std::uint64_t row_count, MutableBytes rows);

/// Looks at one matrix of decoded rows.
class DecodedRows {
 public:
  DecodedRows(const std::uint8_t* rows, const MatrixShape& shape, std::size_t matrix)
      : id_bytes_(id_bytes_of(shape)), value_bytes_(value_bytes(shape.value_type)) {
    const std::uint8_t* const starts = rows + matrix * 3 * sizeof(std::uint64_t);
    row_ends_ = rows + load_little<std::uint64_t>(starts);
    ids_ = rows + load_little<std::uint64_t>(starts + 8);
    values_ = value_bytes_ == 0 ? nullptr : rows + load_little<std::uint64_t>(starts + 16);
  }
  /// Prefetches the memory that holds a row's location.
  void prefetch(std::size_t index) const { __builtin_prefetch(row_ends_ + index * sizeof(std::uint64_t)); }
  [[nodiscard]] StoredRow row(std::size_t index) const {
    const std::uint64_t begin = index == 0 ? 0 : end_of(index - 1);
    return {ids_ + begin * id_bytes_, values_ == nullptr ? nullptr : values_ + begin * value_bytes_,
            static_cast<std::size_t>(end_of(index) - begin)};
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
};

}  // namespace chunkhit
