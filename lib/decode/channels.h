// Between gray, gray + alpha, RGB and RGBA, with Pillow's arithmetic (Pillow 9.4, src/libImaging/Convert.c);
// 16-bit values to 8 bits.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "types/image.h"

namespace chunkhit {

/// Converts `pixel_count` pixels from `from` to `to` channels (1, 2, 3 or 4 each; 2 and 4 end in alpha).
/// Colour becomes gray by (19595 R + 38470 G + 7471 B + 32768) >> 16; alpha is dropped or 255.
void convert_channels(const std::uint8_t* source, std::uint32_t from, std::uint8_t* target, std::uint32_t to,
                      std::size_t pixel_count);

/// Pastes an RGBA image onto a color and converts it to 1 or 3 channels, as Pillow's paste and convert do.
void compose_over(const std::array<std::uint8_t, 3>& color, std::uint32_t channels, Image& image);

/// Converts CMYK as Adobe's JPEG files store it (inverted) to RGB.
void cmyk_to_rgb(const std::uint8_t* cmyk, std::uint8_t* rgb, std::size_t pixel_count);

/// Undoes the multiplication of a pixel's colors with its alpha, as Pillow does.
void divide_by_alpha(std::uint8_t* rgba);

/// Scales the 16-bit values of an image to 8 bits, and keeps the largest one.
class DeepValues {
 public:
  /// Values up to range[0] become 0, from range[1] on 255; of the whole range the high byte is taken.
  explicit DeepValues(const std::array<std::uint16_t, 2>& range)
      : begin_(range[0]), span_(std::uint32_t{range[1]} - range[0]) {}
  [[nodiscard]] bool is_whole_range() const { return span_ == 65535; }
  [[nodiscard]] std::uint8_t scaled(std::uint32_t value) {
    max_ = std::max(max_, value);
    if (is_whole_range()) return static_cast<std::uint8_t>(value >> 8);
    const std::uint32_t above = std::min(std::max(value, begin_) - begin_, span_);
    return static_cast<std::uint8_t>((above * 255 + span_ / 2) / span_);
  }
  /// The largest value, where the whole range was scaled; else 0.
  [[nodiscard]] std::uint32_t max_value() const { return is_whole_range() ? max_ : 0; }

 private:
  std::uint32_t begin_;
  std::uint32_t span_;
  std::uint32_t max_ = 0;
};

}  // namespace chunkhit
