// How the values of a matrix are kept.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace chunkhit {

/// The type of a stored value; a rating is the stored number times the matrix's scale.
enum class ValueType : std::uint8_t {
  none,  ///< nothing is stored: every entry is 1
  u8,
  u16,
  f32,
};

inline constexpr std::array<std::string_view, 4> kValueTypeNames{"none", "u8", "u16", "f32"};

/// Bytes of one stored value.
[[nodiscard]] constexpr std::size_t value_bytes(ValueType type) {
  constexpr std::array<std::size_t, 4> kBytes{0, 1, 2, 4};
  return kBytes[static_cast<std::size_t>(type)];
}

}  // namespace chunkhit
