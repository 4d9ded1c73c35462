// What the matrices of a part have in common, and their ratings as stored numbers. Layout:
// schemas/row-block.md.
#pragma once

#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "types/value_type.h"

namespace chunkhit {

/// The matrices of a part.
struct MatrixShape {
  std::uint64_t column_count = 0;  ///< 1 .. 2^32 - 1
  std::uint32_t matrix_count = 1;  ///< 2: X and held_out, with the same rows
  ValueType value_type = ValueType::f32;
  double scale = 1;  ///< a rating is the stored number times this, rounded to f32
  bool operator==(const MatrixShape&) const = default;
};

/// Throws bad_data unless the numbers of a shape are such as its page allows.
void check_matrix_shape(const MatrixShape& shape);

/// Writes ratings as stored numbers, which fill `numbers`; without `ratings` every one is 1. Throws bad_data
/// for a rating that is not exactly such a number times the scale.
void encode_ratings(std::span<const float> ratings, const MatrixShape& shape, MutableBytes numbers);

/// Throws bad_data when an f32 among stored numbers is not finite.
void check_finite(Bytes numbers);

}  // namespace chunkhit
