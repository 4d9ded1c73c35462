// Row blocks: rows of sparse matrices ↔ the bytes of one chunk. Layout: schemas/row-block.md.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "chunk/column_steps.h"
#include "types/csr_rows.h"

namespace chunkhit {

/// The matrices of a part.
struct MatrixShape {
  std::uint64_t column_count = 0;  ///< 1 .. 2^32 - 1
  std::uint32_t matrix_count = 1;  ///< 2: X and held_out, with the same rows
  ValueType value_type = ValueType::f32;
  double scale = 1;          ///< a rating is the stored number times this, rounded to f32
  bool has_times = false;    ///< entries have times
  bool has_repeats = false;  ///< a row may have a column several times, which has_times orders
  bool operator==(const MatrixShape&) const = default;
};

/// Throws bad_data unless the numbers of a shape are such as its page allows.
void check_matrix_shape(const MatrixShape& shape);

/// Writes ratings as stored numbers, which fill `numbers`; without `ratings` every one is 1. Throws bad_data
/// for a rating that is not exactly such a number times the scale.
void encode_ratings(std::span<const float> ratings, const MatrixShape& shape, MutableBytes numbers);

/// Reads stored numbers as ratings, which fill `ratings`; `numbers` has as many.
void decode_ratings(Bytes numbers, const MatrixShape& shape, std::span<float> ratings);

/// Throws bad_data when an f32 among stored numbers is not finite.
void check_finite(Bytes numbers);

/// Encodes rows of each matrix (`matrices.size()` = shape.matrix_count, all with as many rows) into `raw`
/// (replaced). Throws bad_data for a value that is not f32(stored number · scale), and where times are not
/// there although the shape has them. Where a tie is not 0, the block has ties; with repeats it always has.
void encode_row_block(std::span<const CsrView> matrices, const MatrixShape& shape, std::uint64_t first_row,
                      ByteBuffer& raw);

/// Changes the first row in an encoded block, for callers that learn it only after encoding.
inline void set_first_row(MutableBytes block, std::uint64_t first_row) {
  store_little(block.data() + 16, first_row);
}

/// The fewest bytes that a block of `row_count` rows has.
[[nodiscard]] constexpr std::uint64_t min_row_block_bytes(std::uint64_t row_count, const MatrixShape& shape) {
  return 24 + shape.matrix_count * (152 + row_count * (shape.has_times ? 1 + sizeof(std::int64_t) : 1));
}

/// What a row block's header says, checked against the shape and the bytes that are there.
struct RowBlockHeader {
  std::uint32_t row_count = 0;
  std::uint64_t first_row = 0;
  struct Matrix {
    std::uint64_t nnz = 0;
    std::uint64_t longest_row = 0;
    Bytes lengths;
    StepGroups groups;
    Bytes ids;
    Bytes values;  ///< as stored
    Bytes times;   ///< as planes of bytes
    Bytes ties;    ///< the same; empty: equal times are in the order of entries
  };
  Matrix matrices[2];
};

/// Reads the header; throws bad_data.
[[nodiscard]] RowBlockHeader decode_row_block_header(Bytes raw, const MatrixShape& shape);

/// Bytes of a block's header.
[[nodiscard]] std::size_t row_block_header_bytes(const MatrixShape& shape);

/// Reads the entries of X of a block of `row_count` rows, of which only the header is there; throws bad_data.
[[nodiscard]] std::uint64_t decode_entry_count(Bytes header, const MatrixShape& shape,
                                               std::uint64_t row_count);

/// Divides a block that is whole into pieces of bytes of one kind, which compress best apart.
[[nodiscard]] std::vector<Bytes> row_block_pieces(Bytes raw, const MatrixShape& shape);

/// Where the entries of one matrix of a block are put.
template <class Id>
struct RowBlockTarget {
  std::span<std::uint64_t> row_ends;  ///< row_count: entries up to the end of each row, from `first_entry` on
  std::uint64_t first_entry = 0;
  std::span<Id> ids;                   ///< nnz
  MutableBytes values;                 ///< nnz · value_bytes(type), as stored
  std::span<std::int64_t> times = {};  ///< nnz; empty: not wanted
  std::span<std::uint32_t> ties = {};  ///< nnz, 0 of a block without; empty: not wanted
};

/// Decodes one matrix of a block, for Id = std::uint16_t (column_count ≤ 65,536) or std::uint32_t; throws
/// bad_data when the planes do not give what the header says.
template <class Id>
void decode_rows(const RowBlockHeader& header, std::size_t matrix, const MatrixShape& shape,
                 const RowBlockTarget<Id>& target);

extern template void decode_rows(const RowBlockHeader&, std::size_t, const MatrixShape&,
                                 const RowBlockTarget<std::uint16_t>&);
extern template void decode_rows(const RowBlockHeader&, std::size_t, const MatrixShape&,
                                 const RowBlockTarget<std::uint32_t>&);

}  // namespace chunkhit
