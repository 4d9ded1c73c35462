// Turning matrices of bytes: columns become rows, and interleaved channels become planes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace chunkhit {

/// Bytes are turned fastest where both sides are multiples of this.
inline constexpr std::size_t kTransposeBlock = 16;

/// Looks at `rows` rows of `columns` bytes, `row_bytes` apart.
struct ByteMatrixView {
  const std::uint8_t* bytes = nullptr;
  std::size_t row_bytes = 0;
  std::size_t rows = 0;
  std::size_t columns = 0;
};

/// Writes the transposed matrix: `in.columns` rows of `in.rows` bytes, `out_row_bytes` apart.
void transpose_bytes(ByteMatrixView in, std::uint8_t* out, std::size_t out_row_bytes);

/// Splits `pixel_count` pixels of `channels` (1 to 4) bytes into planes that are `plane_bytes` apart.
void split_channels(const std::uint8_t* pixels, std::uint32_t channels, std::size_t pixel_count,
                    std::uint8_t* planes, std::size_t plane_bytes);

}  // namespace chunkhit
