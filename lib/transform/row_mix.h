// Weighted sums of rows of bytes: the inner loop of resampling.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transform/axis_weights.h"

namespace chunkhit {

/// Writes one row of `length` bytes per output pixel of the axis, `out_row_bytes` apart: each byte is the
/// weighted sum of the bytes above each other in rows [first, first + count) of `rows`, which are `row_bytes`
/// apart, rounded half up and clamped to 8 bits. Nothing beyond `length` is read or written. The bytes are
/// the same on every machine.
void mix_rows(const AxisWeights& axis, const std::uint8_t* rows, std::size_t row_bytes, std::size_t length,
              std::uint8_t* out, std::size_t out_row_bytes);

}  // namespace chunkhit
