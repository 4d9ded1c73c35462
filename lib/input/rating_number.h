// Numbers in the text of ratings: ids, values, times.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include "base/integer_id.h"
#include "input/eight_bytes.h"

namespace chunkhit {

/// Returns whether 8 bytes from `from` on are readable; `readable_end` may be null, which says no.
[[nodiscard]] inline bool has_eight(const char* from, const char* readable_end) {
  return readable_end != nullptr && readable_end - from >= 8;
}

/// `parse_integer_id` of base/integer_id.h, fast for up to 16 digits where 8 bytes from the text's begin on
/// are readable: before `readable_end`.
[[nodiscard]] inline bool parse_integer_id(std::string_view text, const char* readable_end,
                                           std::int64_t& id) {
  const std::size_t count = text.size();
  if (count == 0 || count > 16 || !has_eight(text.data(), readable_end) || text[0] == '0')
    return parse_integer_id(text, id);
  std::uint32_t head = 0;
  std::uint32_t tail = 0;
  if (!parse_among_eight(load_eight(text.data()), count <= 8 ? count : count - 8, head))
    return parse_integer_id(text, id);
  id = head;
  if (count <= 8) return true;
  if (!parse_among_eight(load_eight(text.data() + count - 8), 8, tail)) return false;
  id = id * 100'000'000 + tail;
  return true;
}

/// Reads a finite decimal number, blanks around it and one sign allowed, as the nearest 32-bit float.
[[nodiscard]] bool parse_value(std::string_view text, char decimal_point, float& value);

/// The same, fast for short numbers where 8 bytes from the text's begin on are readable: before
/// `readable_end`.
[[nodiscard]] inline bool parse_value(std::string_view text, char decimal_point, const char* readable_end,
                                      float& value) {
  // Below 2^24 the digits are an exact float, like the power of ten, so that the division rounds only once.
  constexpr float kPowers[] = {1e0f, 1e1f, 1e2f, 1e3f, 1e4f, 1e5f, 1e6f, 1e7f};
  const std::size_t count = text.size();
  if (count == 0 || count > 8 || !has_eight(text.data(), readable_end))
    return parse_value(text, decimal_point, value);
  const std::uint64_t eight = load_eight(text.data());
  const std::size_t point = find_among_eight(eight, decimal_point);
  std::uint32_t digits = 0;
  if (point >= count) {
    if (!parse_among_eight(eight, count, digits) || digits >= 1u << 24)
      return parse_value(text, decimal_point, value);
    value = static_cast<float>(digits);
    return true;
  }
  const std::uint64_t before = (std::uint64_t{1} << (8 * point)) - 1;
  const std::uint64_t joined = (eight & before) | (eight >> 8 & ~before);
  if (count == 1 || !parse_among_eight(joined, count - 1, digits) || digits >= 1u << 24)
    return parse_value(text, decimal_point, value);
  value = static_cast<float>(digits) / kPowers[count - 1 - point];
  return true;
}

/// What messages expect of a value that keeps_value denies.
inline constexpr const char* kKeptValue = "a number that 32-bit floats hold (--values f32 takes the nearest)";

/// Compares a value of at least 2^24, or nearer to 0 than floats have all their digits, with its text.
[[nodiscard]] bool is_exact(std::string_view text, char decimal_point, float value);

/// Whether what parse_value gave is the value that was written, digits of fractions aside (is_lost).
[[nodiscard]] inline bool keeps_value(std::string_view text, char decimal_point, float value) {
  const float magnitude = std::abs(value);
  if (magnitude >= std::numeric_limits<float>::min() && magnitude < 1 << 24) return true;
  return text == "0" || is_exact(text, decimal_point, value);
}

/// Reads whole seconds, or whatever unit a time has: an integer of 64 bits, or a decimal number rounded down
/// ("978300760.0", "964982703.5", "1e9"; exact below 2^53), blanks around it and one sign allowed; or a date
/// (parse_date) as seconds.
[[nodiscard]] bool parse_time(std::string_view text, char decimal_point, std::int64_t& time);

/// The same, fast as above.
[[nodiscard]] inline bool parse_time(std::string_view text, char decimal_point, const char* readable_end,
                                     std::int64_t& time) {
  return parse_integer_id(text, readable_end, time) || parse_time(text, decimal_point, time);
}

/// Reads a day, or a day and a time as ISO 8601 writes them, as whole seconds from 1970 in UTC, rounded down:
/// "2014-01-03", "2014-01-03 17:05", "2014-01-03T17:05:09.5+01:00", with Z, UTC or an offset behind it;
/// without one it is UTC.
[[nodiscard]] bool parse_date(std::string_view text, std::int64_t& seconds);

/// Reads a day (YYYY-MM-DD) as the seconds from 1970 to its beginning, in UTC.
[[nodiscard]] bool parse_day(std::string_view text, std::int64_t& seconds);

}  // namespace chunkhit
