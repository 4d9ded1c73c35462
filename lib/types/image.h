// Images of 8-bit channels in memory: row by row, channels interleaved.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "types/sample_shape.h"

namespace chunkhit {

/// Sets a size without keeping what the buffer holds, so that old and new bytes are never held together.
inline void resize_empty(ByteBuffer& buffer, std::size_t size) {
  if (size > buffer.capacity()) ByteBuffer().swap(buffer);
  buffer.resize(size);
}

/// A rectangle of pixels: columns [x, x + width), rows [y, y + height).
struct Rect {
  std::uint32_t x = 0;
  std::uint32_t y = 0;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  bool operator==(const Rect&) const = default;
};

/// Looks at pixels of another owner: `height` rows of `width` pixels of `channels` bytes each. Two and
/// four channels mean that the last one is alpha.
struct ImageView {
  const std::uint8_t* pixels = nullptr;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::uint32_t channels = 0;
  std::size_t row_bytes = 0;
  [[nodiscard]] const std::uint8_t* row(std::uint32_t y) const { return pixels + y * row_bytes; }
};

/// Owns pixels in one buffer without gaps between rows. `reshape` keeps the buffer, so that an Image that is
/// used again costs no allocation.
struct Image {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::uint32_t channels = 0;
  ByteBuffer pixels;

  /// Sets the shape and makes room for it; the pixels' values are not defined afterwards.
  void reshape(std::uint32_t new_width, std::uint32_t new_height, std::uint32_t new_channels) {
    width = new_width;
    height = new_height;
    channels = new_channels;
    resize_empty(pixels, std::size_t{width} * height * channels);
  }
  [[nodiscard]] std::size_t row_bytes() const { return std::size_t{width} * channels; }
  [[nodiscard]] std::uint8_t* row(std::uint32_t y) { return pixels.data() + y * row_bytes(); }
  [[nodiscard]] const std::uint8_t* row(std::uint32_t y) const { return pixels.data() + y * row_bytes(); }
  [[nodiscard]] ImageView view() const { return {pixels.data(), width, height, channels, row_bytes()}; }
};

}  // namespace chunkhit
