// Big-endian numbers, as PNG, PSD and PNM store them.
#pragma once

#include <cstdint>

namespace chunkhit {

/// Reads two bytes, high one first; the caller has checked that they are there.
[[nodiscard]] constexpr std::uint32_t load_big16(const std::uint8_t* from) {
  return std::uint32_t{from[0]} << 8 | from[1];
}

/// Reads four bytes, highest one first; the caller has checked that they are there.
[[nodiscard]] constexpr std::uint32_t load_big32(const std::uint8_t* from) {
  return load_big16(from) << 16 | load_big16(from + 2);
}

}  // namespace chunkhit
