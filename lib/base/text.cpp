#include "base/text.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <system_error>

namespace chunkhit {
namespace {

std::size_t ascii_prefix(const std::uint8_t* bytes, std::size_t count) {
  constexpr std::uint64_t kHighBits = 0x8080808080808080u;
  std::size_t at = 0;
  for (std::uint64_t word = 0; at + sizeof word <= count; at += sizeof word) {
    std::memcpy(&word, bytes + at, sizeof word);
    if ((word & kHighBits) != 0) break;
  }
  while (at < count && bytes[at] < 0x80) ++at;
  return at;
}

// Gives the bytes of the character that begins here, 0 when there is none; the ranges are Unicode's table
// 3-7.
std::size_t character_bytes(const std::uint8_t* bytes, std::size_t count) {
  const std::uint8_t lead = bytes[0];
  if (lead < 0xc2 || lead > 0xf4) return 0;
  const std::size_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (count < length) return 0;
  const std::uint8_t least = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  const std::uint8_t most = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  if (bytes[1] < least || bytes[1] > most) return 0;
  for (std::size_t at = 2; at < length; ++at)
    if ((bytes[at] & 0xc0) != 0x80) return 0;
  return length;
}

}  // namespace

bool is_utf8(std::string_view text) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(text.data());
  std::size_t at = ascii_prefix(bytes, text.size());
  while (at < text.size()) {
    const std::size_t length = character_bytes(bytes + at, text.size() - at);
    if (length == 0) return false;
    at += length;
    at += ascii_prefix(bytes + at, text.size() - at);
  }
  return true;
}

std::string escape_bytes(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(text.data());
  std::string escaped;
  for (std::size_t at = 0; at < text.size();) {
    const bool is_ascii = bytes[at] != 0 && bytes[at] < 0x80;
    const std::size_t length = is_ascii ? 1 : character_bytes(bytes + at, text.size() - at);
    escaped += text.substr(at, length);
    if (length == 0) escaped += {'\\', 'x', kDigits[bytes[at] >> 4], kDigits[bytes[at] & 15]};
    at += length == 0 ? 1 : length;
  }
  return escaped;
}

namespace {

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
  if (bare.empty() || bare == "NA") return LabelForm::missing;  // R writes NA
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

std::string_view without_type(std::string_view name) {
  const std::size_t colon = name.rfind(':');
  if (colon == std::string_view::npos) return name;
  const std::string_view type = name.substr(colon + 1);
  const bool known = type == "token" || type == "token_seq" || type == "float" || type == "float_seq";
  return known ? name.substr(0, colon) : name;
}

std::string lower(std::string_view text) {
  std::string letters(text);
  for (char& letter : letters)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  return letters;
}

std::string_view without_blanks(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::string plain_name(std::string_view name) {
  std::string plain;
  for (const char c : without_type(name))
    if (c != '_' && c != '-' && c != ' ') plain += c;
  return lower(plain);
}

}  // namespace chunkhit
