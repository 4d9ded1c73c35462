// Reads text: UTF-8, ASCII letters, blanks, ids and numbers, kinds of labels, names of columns.
#pragma once

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace chunkhit {

/// Returns text with the small letters of ASCII for its capitals, whatever the locale.
[[nodiscard]] std::string lower(std::string_view text);

/// Returns text without the blanks and tabs around it.
[[nodiscard]] std::string_view without_blanks(std::string_view text);

/// Returns whether text is valid UTF-8 (RFC 3629: shortest forms, no surrogates, up to U+10FFFF).
[[nodiscard]] bool is_utf8(std::string_view text);

/// Writes NUL and every byte that is no part of a UTF-8 character as "\xNN"; the rest stays as it is.
[[nodiscard]] std::string escape_bytes(std::string_view text);

/// Reads a number that is all of a text, whatever the locale; false for any other text.
template <class Number>
[[nodiscard]] bool parse_all(std::string_view text, Number& number) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end;
}

/// Reads an integer that is written as integers are: digits without leading zeros, perhaps after a minus, in
/// 64 bits. False for all else ("007", "+7", "-0", "7.0"): such an id is text.
[[nodiscard]] inline bool parse_integer_id(std::string_view text, std::int64_t& id) {
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

/// What one label is, detected from its text alone.
enum class LabelForm : std::uint8_t {
  integer,     ///< digits with an optional sign that fit 64 bits
  number,      ///< another decimal number that fits a 32-bit float
  name,        ///< any other text
  missing,     ///< empty or blank
  not_finite,  ///< nan, inf or infinity: what a program wrote for a missing value, never a label
  not_utf8,
};

inline constexpr std::size_t kLabelFormCount = 6;

/// Returns whether a text of this form is a label in some column.
[[nodiscard]] constexpr bool can_be_label(LabelForm form) { return form <= LabelForm::name; }
/// Returns whether a text of this form is a number, whole or not.
[[nodiscard]] constexpr bool is_number(LabelForm form) { return form <= LabelForm::number; }

/// Returns the form of a text on its own.
[[nodiscard]] LabelForm label_form(std::string_view text);

/// Reads an integer of 64 bits; blanks around it and one sign are allowed.
[[nodiscard]] std::optional<std::int64_t> parse_integer(std::string_view text);

/// Reads a finite decimal number as the nearest 32-bit float, whatever the locale; blanks around it and one
/// sign are allowed.
[[nodiscard]] std::optional<float> parse_number(std::string_view text);

/// Writes a number as the shortest text that gives it back: "0.1", "-35".
template <class Number>
[[nodiscard]] std::string number_text(Number value) {
  std::array<char, 32> text;
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

/// Writes a number such that no reader takes it for a whole one: "3.0".
template <class Number>
[[nodiscard]] std::string fraction_text(Number value) {
  const std::string text = number_text(value);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

/// Writes a label that is a number such that reading it again gives the same: one that is the only label is
/// no whole number, and what is missing (NaN) is empty.
[[nodiscard]] inline std::string label_number_text(float value, bool is_only) {
  if (value != value) return {};
  return is_only ? fraction_text(value) : number_text(value);
}

/// Removes RecBole's type from a column's name: "user_id:token".
[[nodiscard]] std::string_view without_type(std::string_view name);

/// Returns a column's name without its type, capitals, blanks, - and _: "User_ID" as "userid".
[[nodiscard]] std::string plain_name(std::string_view name);

}  // namespace chunkhit
