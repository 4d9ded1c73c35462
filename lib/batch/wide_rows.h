// Widens the numbers of a stored row to those of a batch, and clears batches, with SIMD.
#pragma once

#include <cstddef>
#include <cstdint>

namespace chunkhit {

/// Widens `count` numbers; the two do not overlap.
void widen_ids(const std::uint16_t* ids, std::size_t count, std::int32_t* indices);

/// Multiplies `count` bytes; the two do not overlap.
void scale_bytes(const std::uint8_t* bytes, float factor, std::size_t count, float* values);

/// Clears bytes past the caches, which keep what they hold.
void stream_zeros(std::uint8_t* bytes, std::size_t count);

}  // namespace chunkhit
