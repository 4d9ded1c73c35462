#include "types/fields.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <system_error>

#include "base/text.h"
#include "base/throw_error.h"

namespace chunkhit {
namespace {

/// The pieces between delimiters that are not empty.
std::vector<std::string> cut(const std::string& text, char delimiter) {
  std::vector<std::string> pieces;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(delimiter, at), text.size());
    if (end > at) pieces.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return pieces;
}

}  // namespace

std::string dashed(std::string_view name) {
  std::string text(name);
  std::ranges::replace(text, '_', '-');
  return text;
}

void refuse_text(const std::string& name, const std::string& expected, const std::string& found) {
  throw_usage(name + ": expected " + expected + ", found '" + found + "'");
}

std::string range_text(std::uint64_t min, std::uint64_t max) {
  return "a whole number from " + std::to_string(min) + " to " + std::to_string(max);
}

std::uint64_t parse_count(const std::string& name, const std::string& text, std::uint64_t min,
                          std::uint64_t max) {
  std::uint64_t count = 0;
  if (!parse_all(text, count) || count < min || count > max) refuse_text(name, range_text(min, max), text);
  return count;
}

std::uint64_t parse_bytes(const std::string& name, const std::string& text) {
  std::uint64_t whole = 0;
  if (parse_all(text, whole) && whole <= INT64_MAX) return whole;
  double value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  std::string unit(end.ptr, text.data() + text.size());
  for (const char* suffix : {"iB", "B"})
    if (unit.size() > 1 && unit.ends_with(suffix))
      unit.resize(unit.size() - std::char_traits<char>::length(suffix));
  if (unit == "B") unit.clear();
  constexpr std::string_view kUnits = "KMGT";
  const std::size_t power = unit.empty() ? 0 : kUnits.find(static_cast<char>(std::toupper(unit[0]))) + 1;
  const double bytes = value * std::pow(1024.0, static_cast<double>(power));
  if (end.ec != std::errc() || unit.size() > 1 || (!unit.empty() && power == 0) || !(bytes >= 0) ||
      bytes > 9e18)
    refuse_text(name, "a size like 512M or 2G", text);
  return static_cast<std::uint64_t>(bytes);
}

std::pair<std::uint32_t, std::uint32_t> parse_size(const std::string& name, const std::string& text) {
  std::pair<std::uint32_t, std::uint32_t> size{0, 0};
  const std::size_t cross = text.find('x');
  const bool is_pair = cross != std::string::npos;
  if (!parse_all(std::string_view(text).substr(0, cross), size.first) || size.first < 1 ||
      size.first > kMaxSide ||
      (is_pair && (!parse_all(std::string_view(text).substr(cross + 1), size.second) || size.second < 1 ||
                   size.second > kMaxSide)))
    refuse_text(name, "WxH or N, with sides of 1 to 65535 pixels", text);
  return size;
}

std::pair<std::uint32_t, std::uint32_t> parse_square(const std::string& name, const std::string& text) {
  const auto [width, height] = parse_size(name, text);
  return {width, height == 0 ? width : height};
}

std::pair<std::uint64_t, double> parse_amount(const std::string& name, const std::string& text) {
  if (text.find_first_not_of("0123456789") == std::string::npos) return {parse_count(name, text), 0};
  double share = 0;
  const bool is_percent = text.ends_with('%');
  const bool is_number =
      parse_all(std::string_view(text).substr(0, text.size() - (is_percent ? 1 : 0)), share);
  if (is_percent) share /= 100;
  if (!is_number || !(share >= 0 && share <= 1))
    refuse_text(name, "a count or a share like 0.1 or 10%", text);
  return {0, share};
}

std::string NamesForm::text(const std::vector<std::string>& value) const {
  std::string all;
  for (const std::string& name : value) all += (all.empty() ? "" : ",") + name;
  return all.empty() ? if_empty : all;
}

void NamesForm::parse(const std::string&, const std::string& text, std::vector<std::string>& value) const {
  value = text == if_empty ? std::vector<std::string>() : cut(text, ',');
}

std::vector<std::string> ChoiceForm::words() const { return cut(choices, ' '); }

void RepeatedForm::parse(const std::string&, const std::string& text, std::vector<std::string>& value) const {
  value = cut(text, ',');
}

std::string BytesForm::shown(std::uint64_t value) const {
  constexpr std::string_view kUnits = "TGMK";
  for (std::size_t at = 0; at < kUnits.size(); ++at) {
    const std::uint64_t unit = std::uint64_t{1} << (10 * (kUnits.size() - at));
    if (value >= unit && value % unit == 0) return std::to_string(value / unit) + kUnits[at];
  }
  return text(value);
}

std::string ShareForm::text(double value) const { return number_text(value); }

void ShareForm::parse(const std::string& name, const std::string& text, double& value) const {
  value = parse_amount(name, text).second;
  if (!(value > 0 && value < 1)) refuse_text(name, "a share above 0 and below 1", text);
}

}  // namespace chunkhit
