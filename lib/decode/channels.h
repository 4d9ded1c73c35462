// Between gray, gray + alpha, RGB and RGBA, with Pillow's arithmetic (Pillow 9.4, src/libImaging/Convert.c).
#pragma once

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

}  // namespace chunkhit
