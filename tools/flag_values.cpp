#include "flag_values.h"

#include <algorithm>
#include <charconv>
#include <system_error>

#include "chunkhit/error.h"

namespace chunkhit {
namespace {

[[noreturn]] void refuse(const std::string& flag, const std::string& expected, const std::string& found) {
  throw Error(ErrorCode::usage, flag + ": expected " + expected + ", found '" + found + "'");
}

/// True when all of `text` is one number of the kind of `value`.
template <class Number>
bool read_number(const std::string& text, Number& value) {
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  return read.ec == std::errc() && read.ptr == end;
}

/// A number that what it counts may follow.
struct Quantity {
  double number = -1;  ///< below 0: the text does not begin with a number
  std::string unit;
};

Quantity read_quantity(const std::string& text) {
  Quantity quantity;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, quantity.number);
  if (read.ec != std::errc() || !(quantity.number >= 0)) quantity.number = -1;  // "nan" is a number, too
  quantity.unit.assign(read.ptr, end);
  return quantity;
}

}  // namespace

std::uint32_t parse_side(const std::string& flag, const std::string& text) {
  std::uint32_t side = 0;
  if (!read_number(text, side) || side < 1 || side > 65535) refuse(flag, "sides of 1 to 65535 pixels", text);
  return side;
}

std::pair<std::uint32_t, std::uint32_t> parse_size(const std::string& flag, const std::string& text) {
  const std::size_t cross = text.find('x');
  if (cross == std::string::npos) refuse(flag, "WxH", text);
  return {parse_side(flag, text.substr(0, cross)), parse_side(flag, text.substr(cross + 1))};
}

std::pair<std::uint32_t, std::uint32_t> parse_crop(const std::string& flag, const std::string& text) {
  if (text.find('x') != std::string::npos) return parse_size(flag, text);
  const std::uint32_t side = parse_side(flag, text);
  return {side, side};
}

std::array<std::uint8_t, 3> parse_color(const std::string& flag, const std::string& text) {
  if (text == "black") return {0, 0, 0};
  if (text == "white") return {255, 255, 255};
  std::array<std::uint8_t, 3> color{};
  const bool is_hex = text.size() == 7 && text[0] == '#';
  std::size_t begin = is_hex ? 1 : 0;
  for (std::size_t index = 0; index < color.size(); ++index) {
    const std::size_t end = is_hex       ? begin + 2
                            : index == 2 ? text.size()
                                         : std::min(text.find(',', begin), text.size());
    const auto read = std::from_chars(text.data() + begin, text.data() + end, color[index], is_hex ? 16 : 10);
    if (read.ec != std::errc() || read.ptr != text.data() + end)
      refuse(flag, "black, white, #rrggbb or r,g,b", text);
    begin = std::min(is_hex ? end : end + 1, text.size());
  }
  return color;
}

std::uint64_t parse_pixels(const std::string& flag, const std::string& text) {
  const Quantity quantity = read_quantity(text);
  double factor = -1;
  if (quantity.unit.empty()) factor = 1;
  if (quantity.unit == "M" || quantity.unit == "MP") factor = 1e6;
  if (quantity.unit == "G" || quantity.unit == "GP") factor = 1e9;
  const double pixels = quantity.number * factor;
  if (quantity.number < 0 || !(pixels >= 1) || pixels > 1e18) refuse(flag, "a count like 256M", text);
  return static_cast<std::uint64_t>(pixels);
}

std::uint64_t parse_count(const std::string& flag, const std::string& text, CountRange range) {
  std::uint64_t count = 0;
  if (!read_number(text, count) || count < range.least || count > range.most)
    refuse(flag, "a whole number from " + std::to_string(range.least) + " to " + std::to_string(range.most),
           text);
  return count;
}

char parse_delimiter(const std::string& flag, const std::string& text) {
  if (text == "\\t" || text == "tab") return '\t';
  if (text.size() != 1) refuse(flag, "one character or tab", text);
  return text[0];
}

std::vector<SplitShare> parse_split(const std::string& flag, const std::string& text) {
  std::vector<SplitShare> shares;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    const std::string entry = text.substr(at, comma - at);
    const std::size_t equals = std::min(entry.find('='), entry.size());
    SplitShare share{entry.substr(0, equals), 0};
    if (equals == entry.size() || !read_number(entry.substr(equals + 1), share.share))
      refuse(flag, "NAME=SHARE", entry);
    shares.push_back(std::move(share));
    at = comma + 1;
  }
  return shares;
}

ErrorLimit parse_error_limit(const std::string& flag, const std::string& text) {
  const Quantity quantity = read_quantity(text);
  if (quantity.unit == "%" && quantity.number >= 0 && quantity.number <= 100)
    return {quantity.number / 100, 0};
  ErrorLimit limit;
  if (!read_number(text, limit.count)) refuse(flag, "a count or a share like 1%", text);
  return limit;
}

}  // namespace chunkhit
