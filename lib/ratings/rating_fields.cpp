#include "ratings/rating_fields.h"

#include <charconv>
#include <chrono>

namespace chunkhit {
namespace {

constexpr double kExactIntegers = 9007199254740992.0;  // 2^53

bool parse_decimal(std::string_view text, std::int64_t& time, double& fraction) {
  text = without_blanks(text);
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  double number = 0;
  if (!parse_all(text, number) || !(std::abs(number) <= kExactIntegers)) return false;
  time = static_cast<std::int64_t>(std::floor(number));
  fraction = number - std::floor(number);
  return true;
}

template <class Number>
bool parse_digits(std::string_view text, Number& number) {
  number = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return false;
    number = number * 10 + static_cast<Number>(c - '0');
  }
  return true;
}

/// Takes two digits below `limit` off the front.
bool take_two(std::string_view& text, int limit, int& number) {
  if (text.size() < 2 || !parse_digits(text.substr(0, 2), number) || number >= limit) return false;
  text.remove_prefix(2);
  return true;
}

bool take_char(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

/// Takes HH:MM, HH:MM:SS or HH:MM:SS.FRACTION off the front; 60 is a leap second.
bool take_clock(std::string_view& text, std::int64_t& seconds) {
  int hour = 0;
  int minute = 0;
  int second = 0;
  if (!take_two(text, 24, hour) || !take_char(text, ':') || !take_two(text, 60, minute)) return false;
  if (take_char(text, ':')) {
    if (!take_two(text, 61, second)) return false;
    if (take_char(text, '.')) {
      const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
      if (digits == 0) return false;
      text.remove_prefix(digits);
    }
  }
  seconds += hour * 3600 + minute * 60 + second;
  return true;
}

/// Reads the digits behind the point of a clock as a fraction.
double fraction_of_clock(std::string_view text) {
  const std::size_t point = text.find('.');
  if (point == std::string_view::npos) return 0;
  double fraction = 0;
  double unit = 0.1;
  for (const char digit : text.substr(point + 1)) {
    if (digit < '0' || digit > '9') break;
    fraction += unit * (digit - '0');
    unit /= 10;
  }
  return fraction;
}

/// Reads what stands behind a clock: nothing, Z, UTC, +HH, +HHMM or +HH:MM.
bool apply_zone(std::string_view zone, std::int64_t& seconds) {
  static_cast<void>(take_char(zone, ' '));
  if (zone.empty() || zone == "Z" || zone == "z" || zone == "UTC") return true;
  const int sign = zone.front() == '-' ? -1 : 1;
  int hour = 0;
  int minute = 0;
  if (!take_char(zone, '+') && !take_char(zone, '-')) return false;
  if (!take_two(zone, 24, hour)) return false;
  static_cast<void>(take_char(zone, ':'));
  if (!zone.empty() && !take_two(zone, 60, minute)) return false;
  seconds -= std::int64_t{sign} * (hour * 3600 + minute * 60);
  return zone.empty();
}

bool seconds_of_day(int year, unsigned month, unsigned day, std::int64_t& seconds) {
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month),
                                         std::chrono::day(day)};
  if (!date.ok()) return false;
  seconds = std::chrono::duration_cast<std::chrono::seconds>(std::chrono::sys_days(date).time_since_epoch())
                .count();
  return true;
}

/// Reads "Wed Dec 09 19:39:58 -0800 2015": C's asctime, with an offset or without.
bool parse_asctime(std::string_view text, std::int64_t& seconds) {
  constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
  constexpr std::size_t kMonth = 4, kDay = 8, kClock = 11, kYearBytes = 5;
  if (text.size() < kClock + kYearBytes || text[kMonth - 1] != ' ' || text[kDay - 1] != ' ') return false;
  const std::size_t month = kMonths.find(text.substr(kMonth, 3));
  const std::string_view day_text = without_blanks(text.substr(kDay, 2));
  const std::string_view year_text = text.substr(text.size() - kYearBytes);
  int year = 0;
  unsigned day = 0;
  if (month > kMonths.size() || month % 3 != 0 || year_text[0] != ' ' || text[kClock - 1] != ' ')
    return false;
  if (!parse_digits(day_text, day) || !parse_digits(year_text.substr(1), year)) return false;
  std::string_view clock = text.substr(kClock, text.size() - kYearBytes - kClock);
  return seconds_of_day(year, static_cast<unsigned>(month / 3) + 1, day, seconds) &&
         take_clock(clock, seconds) && apply_zone(clock, seconds);
}

}  // namespace

/// Has no branch, so that the compiler makes vectors of it.
TextMarks find_marks(std::string_view text) {
  std::uint8_t all = 0;
  std::uint8_t has_nul = 0;
  std::uint8_t has_quote = 0;
  for (const char c : text) {
    all |= static_cast<std::uint8_t>(c);
    has_nul |= c == 0 ? 1 : 0;
    has_quote |= c == '"' ? 1 : 0;
  }
  return {has_nul != 0, has_quote != 0, all < 0x80};
}

bool parse_unusual_value(std::string_view text, float& value) {
  const auto number = parse_number(text);
  if (number) value = *number;
  return number.has_value();
}

bool is_exact(std::string_view text, float value) {
  if (value == 0)
    return text.substr(0, text.find_first_of("eE")).find_first_of("123456789") == std::string_view::npos;
  std::string_view digits = without_blanks(text);
  if (digits.starts_with('+')) digits.remove_prefix(1);
  long double number = 0;  // has 64 bits: as many as whole numbers of programs
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return result.ec == std::errc() && number == static_cast<long double>(value);
}

namespace {

/// Reads a time that may have a fraction: a date, or a decimal number.
bool parse_fine_time(std::string_view text, std::int64_t& time, double& fraction) {
  if (parse_date(text, time)) {
    fraction = fraction_of_clock(text);
    return true;
  }
  return parse_decimal(text, time, fraction);
}

}  // namespace

std::int64_t with_scale(std::int64_t time, std::int64_t scale) {
  std::int64_t scaled = 0;
  if (!__builtin_mul_overflow(time, scale, &scaled)) return scaled;
  return time < 0 ? std::numeric_limits<std::int64_t>::min() : std::numeric_limits<std::int64_t>::max();
}

bool parse_unusual_time(std::string_view text, std::int64_t& time, bool* is_cut, std::int64_t scale) {
  double fraction = 0;
  if (!parse_integer_id(text, time)) {
    if (const auto number = parse_integer(text))
      time = *number;
    else if (!parse_fine_time(text, time, fraction))
      return false;
  }
  if (is_cut != nullptr) *is_cut = fraction > 0;
  time = with_scale(time, scale);
  if (fraction > 0 && scale > 1) time += static_cast<std::int64_t>(fraction * static_cast<double>(scale));
  return true;
}

bool parse_date(std::string_view text, std::int64_t& seconds) {
  text = without_blanks(text);
  if (!parse_day(text.substr(0, 10), seconds)) return parse_asctime(text, seconds);
  text.remove_prefix(10);
  if (text.empty()) return true;
  if (text.front() != 'T' && text.front() != 't' && text.front() != ' ') return false;
  text.remove_prefix(1);
  return take_clock(text, seconds) && apply_zone(text, seconds);
}

bool parse_day(std::string_view text, std::int64_t& seconds) {
  int year = 0;
  unsigned month = 0;
  unsigned day = 0;
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return false;
  if (!parse_digits(text.substr(0, 4), year) || !parse_digits(text.substr(5, 2), month) ||
      !parse_digits(text.substr(8, 2), day))
    return false;
  return seconds_of_day(year, month, day, seconds);
}

namespace {

constexpr const char* kLoneQuote =
    "quotes: one in a field without quotes (`quote` none takes quotes for letters)";
constexpr const char* kTextBehindQuote =
    "quotes: text behind a closing one (`quote` none takes quotes for letters)";
constexpr const char* kBackslash =
    "quotes: a backslash stands before one; RFC 4180 doubles it: sed 's/\\\\\"/\"\"/g' FILE | pack-sparse - "
    "...";
constexpr const char* kOpenQuote = "quotes: one is never closed (`quote` none takes quotes for letters)";

}  // namespace

bool read_quoted_field(std::string_view line, std::string_view delimiter, std::size_t& at,
                       std::string_view& field, std::string& unquoted, SplitError& error) {
  const auto refuse = [&error](std::size_t position, const char* reason) {
    error = {position, reason, 0};
    return false;
  };
  const std::size_t begin = at;
  if (at == line.size() || line[at] != '"') {
    at = std::min(line.find(delimiter, at), line.size());
    field = line.substr(begin, at - begin);
    const std::size_t quote = field.find('"');
    return quote == std::string_view::npos || refuse(begin + quote, kLoneQuote);
  }
  unquoted.clear();
  for (++at;; at += 2) {
    const std::size_t quote = line.find('"', at);
    if (quote == std::string_view::npos) return refuse(begin, kOpenQuote);
    unquoted += line.substr(at, quote - at);
    at = quote;
    if (quote + 1 == line.size() || line[quote + 1] != '"') break;
    unquoted += '"';
  }
  ++at;
  field = unquoted;
  if (at == line.size() || line.substr(at).starts_with(delimiter)) return true;
  return refuse(at, at > 1 && line[at - 2] == '\\' ? kBackslash : kTextBehindQuote);
}

std::size_t find_quoted_field(std::string_view line, std::string_view delimiter, std::size_t from) {
  const auto begins = [&](std::size_t at) {
    if (delimiter == kBlanks) return at == 0 || BlankDelimiter::is_blank(line[at - 1]);
    return at == 0 || line.substr(0, at).ends_with(delimiter);
  };
  std::size_t at = line.find('"', from);
  while (at != std::string_view::npos && !begins(at)) at = line.find('"', at + 1);
  return at;
}

bool ends_in_quote(std::string_view line, std::string_view delimiter, std::size_t at) {
  if (delimiter == kBlanks) return ends_in_quote(line, " ", at) || ends_in_quote(line, "\t", at);
  std::string_view field;
  std::string unquoted;
  SplitError error;
  return read_quoted_field(line, delimiter, at, field, unquoted, error);
}

std::vector<std::string> all_fields(std::string_view line, std::string_view delimiter, TextQuoting quoting) {
  std::vector<std::string> fields;
  const bool blanks = delimiter == kBlanks;
  if (blanks) line = BlankDelimiter().strip(line);
  std::string_view field;
  std::string unquoted;
  SplitError error;
  for (std::size_t at = 0;;) {
    if (quoting == TextQuoting::double_quote) {
      if (!read_quoted_field(line, delimiter, at, field, unquoted, error)) return fields;
    } else {
      const std::size_t end = blanks ? line.find_first_of(" \t", at) : line.find(delimiter, at);
      field = line.substr(at, end - at);
      at = std::min(end, line.size());
    }
    fields.emplace_back(field);
    if (at == line.size()) return fields;
    at = blanks ? line.find_first_not_of(" \t", at) : at + delimiter.size();
  }
}

bool QuotedSplitter::split(std::string_view line, RatingFields& fields) {
  error_ = {};
  std::size_t at = 0;
  for (std::size_t column = 0;; ++column) {
    const bool wanted = column < columns_.size();
    const auto what = static_cast<std::size_t>(wanted ? columns_[column] : RatingField::other);
    if (!read_quoted_field(line, delimiter_, at, fields.text[what], unquoted_[what], error_)) return false;
    if (at == line.size()) {
      error_.column_count = column + 1;
      return column + 1 >= columns_.size() && (max_columns_ == 0 || column < max_columns_);
    }
    at += delimiter_.size();
  }
}

}  // namespace chunkhit
