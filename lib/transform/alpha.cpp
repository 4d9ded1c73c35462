#include "transform/alpha.h"

#include <algorithm>

namespace chunkhit {
namespace {

// Divides a product of two 8-bit values by 255, rounded.
constexpr std::uint8_t divide_by_255(unsigned product) {
  product += 128;
  return static_cast<std::uint8_t>(((product >> 8) + product) >> 8);
}

template <std::uint32_t kChannels>
void multiply(std::uint8_t* pixel, std::size_t pixel_count) {
  for (const std::uint8_t* const end = pixel + pixel_count * kChannels; pixel != end; pixel += kChannels) {
    const unsigned alpha = pixel[kChannels - 1];
    if (alpha == 255) continue;
    for (std::uint32_t i = 0; i + 1 < kChannels; ++i) pixel[i] = divide_by_255(pixel[i] * alpha);
  }
}

template <std::uint32_t kChannels>
void divide(std::uint8_t* pixel, std::size_t pixel_count) {
  for (const std::uint8_t* const end = pixel + pixel_count * kChannels; pixel != end; pixel += kChannels) {
    const unsigned alpha = pixel[kChannels - 1];
    if (alpha == 0 || alpha == 255) continue;
    for (std::uint32_t i = 0; i + 1 < kChannels; ++i)
      pixel[i] = static_cast<std::uint8_t>(std::min(255u, 255u * pixel[i] / alpha));
  }
}

}  // namespace

void multiply_alpha(std::uint8_t* pixels, std::uint32_t channels, std::size_t pixel_count) {
  if (channels == 2) multiply<2>(pixels, pixel_count);
  if (channels == 4) multiply<4>(pixels, pixel_count);
}

void divide_alpha(std::uint8_t* pixels, std::uint32_t channels, std::size_t pixel_count) {
  if (channels == 2) divide<2>(pixels, pixel_count);
  if (channels == 4) divide<4>(pixels, pixel_count);
}

}  // namespace chunkhit
