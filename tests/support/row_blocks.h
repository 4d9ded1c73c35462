// Row blocks made and read by tests.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "chunk/row_block.h"
#include "chunkhit/error.h"

namespace chunkhit {

/// One matrix of a block, decoded.
template <class Id>
struct DecodedRows {
  std::vector<std::uint64_t> row_ends;
  std::vector<Id> ids;
  std::vector<std::uint8_t> values;
  std::vector<std::int64_t> times;
  std::vector<std::uint32_t> ties;
};

template <class Id>
DecodedRows<Id> decode(Bytes raw, std::size_t matrix, const MatrixShape& shape,
                       std::uint64_t first_entry = 0) {
  const RowBlockHeader header = decode_row_block_header(raw, shape);
  const std::uint64_t nnz = header.matrices[matrix].nnz;
  DecodedRows<Id> rows{std::vector<std::uint64_t>(header.row_count), std::vector<Id>(nnz),
                       std::vector<std::uint8_t>(nnz * value_bytes(shape.value_type)),
                       std::vector<std::int64_t>(shape.has_times ? nnz : 0),
                       std::vector<std::uint32_t>(shape.has_times ? nnz : 0)};
  decode_rows<Id>(header, matrix, shape,
                  {rows.row_ends, first_entry, rows.ids, rows.values, rows.times, rows.ties});
  return rows;
}

inline ByteBuffer encode(const CsrRows& rows, const MatrixShape& shape) {
  ByteBuffer raw;
  const CsrView view = rows.view();
  encode_row_block({&view, 1}, shape, 0, raw);
  return raw;
}

inline std::string error_of(Bytes raw, const MatrixShape& shape) {
  try {
    static_cast<void>(decode<std::uint32_t>(raw, 0, shape));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_data);
    return error.what();
  }
  return "";
}

/// Rows of different lengths; a column in four is up to `largest_step` behind the one before, the others near
/// it.
inline CsrRows random_rows(std::size_t row_count, std::uint32_t columns, std::uint32_t largest_step) {
  std::mt19937 random(7);
  CsrRows rows;
  for (std::size_t row = 0; row < row_count; ++row) {
    // A row in nine has none; of the others one in two is cut short.
    const std::size_t most = row % 9 == 8 ? 0 : row % 2 == 0 ? random() % 40 : 1000;
    for (std::uint64_t column = random() % largest_step;
         column < columns && rows.nnz() - rows.indptr.back() < most;
         column += 1 + random() % (random() % 4 == 0 ? largest_step : 100))
      rows.indices.push_back(static_cast<std::uint32_t>(column));
    rows.indptr.push_back(rows.nnz());
  }
  return rows;
}

}  // namespace chunkhit
