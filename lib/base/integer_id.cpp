#include "base/integer_id.h"

#include <cstddef>

namespace chunkhit {

bool parse_integer_id(std::string_view text, std::int64_t& id) {
  constexpr std::size_t kMaxDigits = 19;
  const bool negative = !text.empty() && text[0] == '-';
  const std::string_view digits = text.substr(negative ? 1 : 0);
  if (digits.empty() || digits.size() > kMaxDigits) return false;
  if (digits[0] == '0' && (digits.size() > 1 || negative)) return false;
  std::uint64_t number = 0;  // 19 digits do not overflow it
  for (const char c : digits) {
    if (c < '0' || c > '9') return false;
    number = number * 10 + static_cast<std::uint64_t>(c - '0');
  }
  if (number > static_cast<std::uint64_t>(INT64_MAX) + (negative ? 1 : 0)) return false;
  id = static_cast<std::int64_t>(negative ? 0 - number : number);
  return true;
}

}  // namespace chunkhit
