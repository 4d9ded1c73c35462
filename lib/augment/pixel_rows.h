// Rows of pixels: copied past the caches, mirrored, made columns, and put together from planes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace chunkhit {

/// Copies bytes past the caches, whole cache lines of them; hwy::FlushStream must follow.
void stream_bytes(const std::uint8_t* bytes, std::size_t count, std::uint8_t* out);

/// Writes pixels of `pixel_bytes` bytes in reverse order. The buffers do not overlap.
void reverse_pixels(const std::uint8_t* pixels, std::size_t pixel_count, std::size_t pixel_bytes,
                    std::uint8_t* out);

/// Where a row of pixels goes that becomes a column.
struct PixelColumn {
  std::size_t pixel_bytes;
  std::size_t count;      ///< pixels
  std::size_t row_bytes;  ///< from one pixel of the column to the next
  bool reversed;          ///< the last pixel comes first
};

/// Writes a row of pixels as a column, whose first pixel is at `out`. The buffers do not overlap.
void write_column(const std::uint8_t* row, const PixelColumn& column, std::uint8_t* out);

/// Puts pixels of `channels` bytes, 2 to 4, together from planes that are `plane_bytes` apart.
void join_channels(const std::uint8_t* planes, std::size_t plane_bytes, std::uint32_t channels,
                   std::size_t pixel_count, std::uint8_t* pixels);

}  // namespace chunkhit
