// Eight characters in one register: what is among them, and the number that they are.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"

namespace chunkhit {

inline constexpr std::uint64_t kEveryByte = 0x0101010101010101u;

/// Loads the 8 characters at `from`, the first one lowest.
[[nodiscard]] inline std::uint64_t load_eight(const char* from) {
  return load_little<std::uint64_t>(reinterpret_cast<const std::uint8_t*>(from));
}

/// Finds the first of 8 characters that is `wanted`: its index, or 8.
[[nodiscard]] inline std::size_t find_among_eight(std::uint64_t eight, char wanted) {
  const std::uint64_t zeros = eight ^ (kEveryByte * static_cast<std::uint8_t>(wanted));
  // The lowest byte that is 0 is the lowest whose top bit is set here; higher ones may be wrong.
  const std::uint64_t found = (zeros - kEveryByte) & ~zeros & (kEveryByte << 7);
  return static_cast<std::size_t>(std::countr_zero(found)) / 8;
}

/// Keeps the first `count` (1 to 8) of 8 characters and puts digits 0 before them; false where one is no
/// digit. Then gives the number that they are.
[[nodiscard]] inline bool parse_among_eight(std::uint64_t eight, std::size_t count, std::uint32_t& number) {
  std::uint64_t digits = (eight ^ (kEveryByte * '0')) << (8 * (8 - count));
  const std::uint64_t high_halves = digits | (digits + kEveryByte * 6);
  if ((high_halves & (kEveryByte * 0xf0)) != 0) return false;
  digits = digits * 10 + (digits >> 8);  // pairs of digits, in every second byte
  constexpr std::uint64_t kPairs = 0x000000ff000000ffu;
  const std::uint64_t outer = (digits & kPairs) * (100 + (std::uint64_t{1000000} << 32));
  const std::uint64_t inner = ((digits >> 16) & kPairs) * (1 + (std::uint64_t{10000} << 32));
  number = static_cast<std::uint32_t>((outer + inner) >> 32);
  return true;
}

}  // namespace chunkhit
