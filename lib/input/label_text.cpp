#include "input/label_text.h"

#include <array>
#include <charconv>
#include <cmath>
#include <system_error>

#include "input/utf8.h"

namespace chunkhit {
namespace {

std::string_view without_blanks(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// std::from_chars takes a minus but no plus.
std::string_view without_plus(std::string_view text) {
  const bool plus = text.size() > 1 && text[0] == '+' && text[1] != '-';
  return plus ? text.substr(1) : text;
}

// Reads the whole of a text; `ec` says invalid_argument when anything is left over.
template <class Number>
std::from_chars_result read_all(std::string_view text, Number& value) {
  auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ptr != text.data() + text.size()) result.ec = std::errc::invalid_argument;
  return result;
}

}  // namespace

LabelForm label_form(std::string_view text) {
  const std::string_view bare = without_blanks(text);
  if (bare.empty()) return LabelForm::missing;
  std::int64_t integer = 0;
  const std::errc integer_error = read_all(without_plus(bare), integer).ec;
  if (integer_error == std::errc()) return LabelForm::integer;
  // A longer row of digits is some key: a float would make different ones equal.
  if (integer_error == std::errc::result_out_of_range) return LabelForm::name;
  if (parse_number(bare)) return LabelForm::number;
  double value = 0;
  if (read_all(without_plus(bare), value).ec == std::errc() && !std::isfinite(value))
    return LabelForm::not_finite;
  return is_utf8(text) ? LabelForm::name : LabelForm::not_utf8;
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  std::int64_t value = 0;
  if (read_all(without_plus(without_blanks(text)), value).ec != std::errc()) return std::nullopt;
  return value;
}

std::optional<float> parse_number(std::string_view text) {
  const std::string_view digits = without_plus(without_blanks(text));
  float value = 0;
  auto result = read_all(digits, value);
  if (result.ec == std::errc::result_out_of_range) {
    // Numbers too small for a float are reported like those too large; a double distinguishes them.
    double wide = 0;
    result = read_all(digits, wide);
    if (std::abs(wide) > 1) return std::nullopt;
    value = static_cast<float>(wide);
  }
  if (result.ec != std::errc() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::string number_text(float value) {
  std::array<char, 32> text;
  const auto result = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), result.ptr};
}

}  // namespace chunkhit
