// Alpha around resampling, with Pillow's arithmetic (Pillow 9.4, src/libImaging/Convert.c).
#pragma once

#include <cstddef>
#include <cstdint>

namespace chunkhit {

/// Whether the last of `channels` channels is alpha.
[[nodiscard]] constexpr bool has_alpha(std::uint32_t channels) { return channels == 2 || channels == 4; }

/// Multiplies the colours by alpha before resampling, in place (Pillow's RGBA → RGBa and LA → La); leaves
/// pixels without alpha as they are.
void multiply_alpha(std::uint8_t* pixels, std::uint32_t channels, std::size_t pixel_count);

/// Divides the colours by alpha again, in place; colours under alpha 0 stay as they are.
void divide_alpha(std::uint8_t* pixels, std::uint32_t channels, std::size_t pixel_count);

}  // namespace chunkhit
