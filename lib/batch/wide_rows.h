// Widens the numbers of a stored row to those of a batch, with SIMD.
#pragma once

#include <cstddef>
#include <cstdint>

namespace chunkhit {

/// Widens `count` numbers; the two do not overlap.
void widen_ids(const std::uint16_t* ids, std::size_t count, std::int32_t* indices);

/// Multiplies `count` bytes; the two do not overlap.
void scale_bytes(const std::uint8_t* bytes, float factor, std::size_t count, float* values);

}  // namespace chunkhit
