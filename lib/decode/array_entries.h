// Entries of a matrix that a file holds as arrays, each read from front to back and never held.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "decode/entry_collector.h"

namespace chunkhit {

/// Gives the next numbers of an array; throws bad_data.
using IntegerSource = std::function<void(std::span<std::int64_t>)>;
using ValueSource = std::function<void(std::span<float>)>;

/// Adds entries until a block is full; false where none are left.
using EntrySource = std::function<bool(EntryCollector&)>;

/// How large a matrix is that arrays hold. Where nothing tells the number of columns it is found on the way.
struct ArrayShape {
  static constexpr std::uint64_t kUnknown = INT64_MAX;
  std::string name;  ///< stands in messages
  std::uint64_t row_count = 0;
  std::uint64_t column_count = 0;
  std::uint64_t* found_columns = nullptr;  ///< the highest column + 1 is kept here
};

/// Compressed rows (CSR): `indptr` has row_count + 1 numbers, `indices` and `values` entry_count each. Rows
/// need not be sorted and may have a column twice. With columns in the place of rows this is CSC:
/// `by_columns`.
struct CompressedArrays {
  std::uint64_t entry_count = 0;
  bool by_columns = false;
  IntegerSource indptr;
  IntegerSource indices;
  ValueSource values;
};
[[nodiscard]] EntrySource compressed_entries(ArrayShape shape, CompressedArrays arrays);

/// Coordinates (COO): entry_count rows, columns and values.
[[nodiscard]] EntrySource coordinate_entries(ArrayShape shape, std::uint64_t entry_count, IntegerSource rows,
                                             IntegerSource columns, ValueSource values);

/// All cells, row by row, or column by column; those that are zero are left out.
[[nodiscard]] EntrySource dense_entries(const ArrayShape& shape, bool by_columns, ValueSource values);

/// Blocks of rows (BSR): compressed rows of dense blocks; cells that are zero are left out.
struct BlockArrays {
  std::uint64_t block_count = 0;
  std::uint64_t block_rows = 1;
  std::uint64_t block_columns = 1;
  IntegerSource indptr;
  IntegerSource indices;
  ValueSource values;
};
[[nodiscard]] EntrySource block_entries(ArrayShape shape, BlockArrays arrays);

/// Diagonals (DIA): `offsets` of the diagonals, each of `length` values, of which the one at column j lies in
/// row j - offset; cells that are zero or outside are left out.
[[nodiscard]] EntrySource diagonal_entries(ArrayShape shape, std::vector<std::int64_t> offsets,
                                           std::uint64_t length, ValueSource values);

}  // namespace chunkhit
