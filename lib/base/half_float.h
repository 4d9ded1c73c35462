// Floats of 16 bits, as their bits: float32 rounded to IEEE 754 half precision and to bfloat16.
#pragma once

#include <bit>
#include <cstdint>

namespace chunkhit {

/// Rounds to the nearest half float, ties to even; too large numbers become infinite.
[[nodiscard]] constexpr std::uint16_t half_float(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000);
  const std::uint32_t magnitude = bits & 0x7fffffff;
  constexpr std::uint32_t kInfinity = 0x7f800000;
  constexpr std::uint32_t kRoundsToInfinity = 0x477ff000;  // 65520
  constexpr std::uint32_t kSmallestNormal = 0x38800000;    // 2^-14
  if (magnitude > kInfinity) return static_cast<std::uint16_t>(sign | 0x7e00);
  if (magnitude >= kRoundsToInfinity) return static_cast<std::uint16_t>(sign | 0x7c00);
  // Adding 2^-1, whose last bit is worth a subnormal half's last bit, lets the processor round.
  if (magnitude < kSmallestNormal) {
    const float rounded = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(rounded) - 0x3f000000));
  }
  const std::uint32_t is_odd = magnitude >> 13 & 1;
  const std::uint32_t rounded = magnitude + 0xfff + is_odd;
  constexpr std::uint32_t kExponentShift = (127 - 15) << 23;
  return static_cast<std::uint16_t>(sign | ((rounded - kExponentShift) >> 13));
}

/// Rounds to the nearest bfloat16, ties to even; too large numbers become infinite.
[[nodiscard]] constexpr std::uint16_t bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  constexpr std::uint32_t kInfinity = 0x7f800000;
  if ((bits & 0x7fffffff) > kInfinity) return 0x7fc0;  // as torch rounds every NaN
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

}  // namespace chunkhit
