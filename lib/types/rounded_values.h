// Values on their way into 32-bit floats, and what that costs them.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace chunkhit {

/// Whether a value lost more than digits of a fraction: it is at least 2^24, or so near to 0 that floats have
/// fewer digits there, and the float is not equal to it.
template <class Wide>
[[nodiscard]] bool is_lost(Wide value, float nearest) {
  constexpr Wide kFirstInexact = 1 << 24;
  if (static_cast<Wide>(nearest) == value) return false;
  const Wide magnitude = value < 0 ? -value : value;
  return magnitude >= kFirstInexact || magnitude < Wide{std::numeric_limits<float>::min()};
}

/// What was noted of values that no float is equal to.
struct RoundedValues {
  std::uint64_t count = 0;
  std::uint64_t lost_count = 0;  ///< of them, those that are `is_lost`
  double first_lost = 0;

  /// Gives the nearest float. Numbers beyond all floats become infinite.
  template <class Wide>
  float take(Wide value) {
    const auto nearest = static_cast<float>(value);
    if (static_cast<Wide>(nearest) == value) return nearest;
    ++count;
    if (is_lost(value, nearest) && ++lost_count == 1) first_lost = static_cast<double>(value);
    return nearest;
  }
};

}  // namespace chunkhit
