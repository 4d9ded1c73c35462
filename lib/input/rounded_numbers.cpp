#include "input/rounded_numbers.h"

#include <array>
#include <cmath>
#include <cstdio>

#include "base/words.h"
#include "input/label_text.h"

namespace chunkhit {
namespace {

constexpr float kFirstGap = 16777216;  // 2^24: behind it a float skips whole numbers

// Programs without integers with gaps (pandas) write 123456789.0.
std::string_view without_zeros(std::string_view text) {
  const std::size_t dot = text.find('.');
  const bool is_whole = dot != text.npos && text.find_first_not_of('0', dot + 1) == text.npos;
  return is_whole ? text.substr(0, dot) : text;
}

}  // namespace

void RoundedNumbers::check(std::string_view text, float value) {
  if (std::abs(value) < kFirstGap) return;
  const auto whole = parse_integer(without_zeros(text));
  // A long double holds 64 bits. A number in another form, 1e30 say, names no whole number digit by digit.
  if (!whole || static_cast<long double>(*whole) == static_cast<long double>(value)) return;
  if (count_++ > 0) return;
  first_ = text;
  first_value_ = value;
}

void RoundedNumbers::add_notice(SampleList& list) const {
  if (count_ == 0) return;
  std::array<char, 64> stored{};
  std::snprintf(stored.data(), stored.size(), "%.0f", static_cast<double>(first_value_));
  list.notices.push_back(count_text(count_, "label") +
                         (count_ == 1 ? " is a whole number" : " are whole numbers") +
                         " that no 32-bit float is equal to: " + first_ + " is packed as " + stored.data());
}

}  // namespace chunkhit
