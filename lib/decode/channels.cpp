#include "decode/channels.h"

#include <cstring>

namespace chunkhit {
namespace {

// a · b / 255, rounded as Pillow's MULDIV255 does.
inline std::uint8_t scale_by_255ths(std::uint32_t a, std::uint32_t b) {
  const std::uint32_t product = a * b + 128;
  return static_cast<std::uint8_t>(((product >> 8) + product) >> 8);
}

inline std::uint8_t luma(const std::uint8_t* rgb) {
  return static_cast<std::uint8_t>((19595u * rgb[0] + 38470u * rgb[1] + 7471u * rgb[2] + 32768u) >> 16);
}

template <std::uint32_t kFrom, std::uint32_t kTo>
void convert(const std::uint8_t* __restrict source, std::uint8_t* __restrict target,
             std::size_t pixel_count) {
  if constexpr (kFrom == kTo) {
    std::memcpy(target, source, pixel_count * kFrom);
    return;
  }
  constexpr bool kFromColor = kFrom >= 3, kToColor = kTo >= 3;
  constexpr bool kFromAlpha = kFrom % 2 == 0, kToAlpha = kTo % 2 == 0;
  for (std::size_t i = 0; i < pixel_count; ++i) {
    const std::uint8_t* from = source + i * kFrom;
    std::uint8_t* to = target + i * kTo;
    if constexpr (kToColor) {
      to[0] = from[0];
      to[1] = from[kFromColor ? 1 : 0];
      to[2] = from[kFromColor ? 2 : 0];
    } else {
      to[0] = kFromColor ? luma(from) : from[0];
    }
    if constexpr (kToAlpha) to[kTo - 1] = kFromAlpha ? from[kFrom - 1] : 255;
  }
}

using Convert = void (*)(const std::uint8_t*, std::uint8_t*, std::size_t);

// Rows: from 1..4 channels; columns: to 1..4 channels.
constexpr std::array<std::array<Convert, 4>, 4> kConvert{{
    {convert<1, 1>, convert<1, 2>, convert<1, 3>, convert<1, 4>},
    {convert<2, 1>, convert<2, 2>, convert<2, 3>, convert<2, 4>},
    {convert<3, 1>, convert<3, 2>, convert<3, 3>, convert<3, 4>},
    {convert<4, 1>, convert<4, 2>, convert<4, 3>, convert<4, 4>},
}};

// a + (b − a) · alpha / 255, rounded as Pillow's paste does.
inline std::uint8_t blend(std::uint32_t a, std::uint32_t b, std::uint32_t alpha) {
  const std::uint32_t sum = a * (255 - alpha) + b * alpha + 128;
  return static_cast<std::uint8_t>(((sum >> 8) + sum) >> 8);
}

}  // namespace

void convert_channels(const std::uint8_t* source, std::uint32_t from, std::uint8_t* target, std::uint32_t to,
                      std::size_t pixel_count) {
  kConvert[from - 1][to - 1](source, target, pixel_count);
}

void compose_over(const std::array<std::uint8_t, 3>& color, std::uint32_t channels, Image& image) {
  std::uint8_t* to = image.pixels.data();
  const std::uint8_t* from = to;
  for (std::size_t left = std::size_t{image.width} * image.height; left > 0;
       --left, from += 4, to += channels) {
    std::array<std::uint8_t, 3> rgb;
    for (std::size_t c = 0; c < rgb.size(); ++c) rgb[c] = blend(color[c], from[c], from[3]);
    if (channels == 1)
      to[0] = luma(rgb.data());
    else
      std::memcpy(to, rgb.data(), rgb.size());
  }
  image.reshape(image.width, image.height, channels);
}

void cmyk_to_rgb(const std::uint8_t* __restrict cmyk, std::uint8_t* __restrict rgb, std::size_t pixel_count) {
  for (std::size_t i = 0; i < pixel_count; ++i) {
    const std::uint32_t light = cmyk[4 * i + 3];  // 255 − K: the file holds all four inverted
    for (std::size_t c = 0; c < 3; ++c)
      rgb[3 * i + c] = static_cast<std::uint8_t>(light - scale_by_255ths(255u - cmyk[4 * i + c], light));
  }
}

void divide_by_alpha(std::uint8_t* rgba) {
  const std::uint32_t alpha = rgba[3];
  for (std::size_t c = 0; c < 3; ++c)
    rgba[c] = alpha == 0 ? 0 : static_cast<std::uint8_t>(std::min(rgba[c] * 255u / alpha, 255u));
}

}  // namespace chunkhit
