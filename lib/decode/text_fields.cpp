#include "decode/text_fields.h"

#include <charconv>
#include <system_error>

namespace chunkhit {
namespace {

// No number of so few digits overflows.
constexpr std::size_t kSafeDigits = 18;

}  // namespace

std::optional<std::uint64_t> parse_count(std::string_view field) {
  if (field.empty()) return std::nullopt;
  std::uint64_t number = 0;
  if (field.size() <= kSafeDigits) {
    for (const char c : field) {
      if (c < '0' || c > '9') return std::nullopt;
      number = number * 10 + static_cast<std::uint64_t>(c - '0');
    }
    return number;
  }
  const char* const end = field.data() + field.size();
  const auto [stop, error] = std::from_chars(field.data(), end, number);
  if (error != std::errc() || stop != end || number > INT64_MAX) return std::nullopt;
  return number;
}

}  // namespace chunkhit
