// A line of a table of ratings → its fields, and their texts → values, times and dates.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/text.h"
#include "ratings/rating_text.h"
#include "types/enum_names.h"

namespace chunkhit {

inline constexpr std::uint64_t kEveryByte = 0x0101010101010101u;

/// Loads the 8 characters at `from`, the first one lowest.
[[nodiscard]] inline std::uint64_t load_eight(const char* from) {
  return load_little<std::uint64_t>(reinterpret_cast<const std::uint8_t*>(from));
}

/// Marks the first of 8 characters that is `wanted` by the highest bit of its byte; bytes above it may be
/// marked wrongly. 0: there is none.
[[nodiscard]] inline std::uint64_t mark_among_eight(std::uint64_t eight, char wanted) {
  const std::uint64_t zeros = eight ^ (kEveryByte * static_cast<std::uint8_t>(wanted));
  return (zeros - kEveryByte) & ~zeros & (kEveryByte << 7);
}

/// Finds the first of 8 characters that is `wanted`: its index, or 8.
[[nodiscard]] inline std::size_t find_among_eight(std::uint64_t eight, char wanted) {
  return static_cast<std::size_t>(std::countr_zero(mark_among_eight(eight, wanted))) / 8;
}

/// The same without a branch, which countr_zero has on older CPUs: for what is there in half of all texts.
[[nodiscard]] inline std::size_t count_before(std::uint64_t eight, char wanted) {
  const std::uint64_t marks = mark_among_eight(eight, wanted) >> 7;
  const std::uint64_t below = ((marks & (0 - marks)) - 1) & kEveryByte;  // a bit for each byte before
  return below * kEveryByte >> 56;
}

/// What a text has anywhere.
struct TextMarks {
  bool has_nul = false;
  bool has_quote = false;
  bool is_ascii = true;
};

/// Looks at a text once.
[[nodiscard]] TextMarks find_marks(std::string_view text);

/// Goes from line to line of a text, whose last line may have no end.
class LineCursor {
 public:
  explicit LineCursor(std::string_view text) : rest_(text) {}
  /// Gives the next line without LF or CRLF; false at the end.
  [[nodiscard]] bool next(std::string_view& line) {
    if (rest_.empty()) return false;
    take(find_end(0), line);
    return true;
  }
  /// Gives the next record: lines up to the first line end that has an even number of quotes before it.
  [[nodiscard]] bool next_record(std::string_view& record) {
    if (rest_.empty()) return false;
    std::size_t end = find_end(0);
    bool is_open = odd_quotes(rest_.substr(0, end));
    for (std::size_t from = end + 1; is_open && from <= rest_.size(); from = end + 1) {
      ++line_count_;
      end = find_end(from);
      is_open ^= odd_quotes(rest_.substr(from, end - from));
    }
    take(end, record);
    return true;
  }
  /// Bytes that are left.
  [[nodiscard]] std::size_t rest_bytes() const { return rest_.size(); }
  /// Skips whole lines.
  void skip(std::size_t bytes, std::uint64_t lines) {
    rest_.remove_prefix(bytes);
    line_count_ += lines;
  }
  /// Lines so far, those within quotes too.
  [[nodiscard]] std::uint64_t line_count() const { return line_count_; }

 private:
  [[nodiscard]] std::size_t find_end(std::size_t from) const {
    const void* found =
        from < rest_.size() ? std::memchr(rest_.data() + from, '\n', rest_.size() - from) : nullptr;
    return found == nullptr ? rest_.size()
                            : static_cast<std::size_t>(static_cast<const char*>(found) - rest_.data());
  }
  [[nodiscard]] static bool odd_quotes(std::string_view text) {
    bool odd = false;
    for (const char c : text) odd ^= c == '"';
    return odd;
  }
  void take(std::size_t end, std::string_view& line) {
    ++line_count_;
    line = rest_.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    rest_.remove_prefix(end == rest_.size() ? end : end + 1);
  }

  std::string_view rest_;
  std::uint64_t line_count_ = 0;
};

/// Keeps the first `count` (1 to 8) of 8 characters, which are digits, and gives the number that they are;
/// false where one is no digit.
[[nodiscard, gnu::always_inline]] inline bool parse_among_eight(std::uint64_t eight, std::size_t count,
                                                                std::uint32_t& number) {
  std::uint64_t digits = (eight ^ (kEveryByte * '0')) << (8 * (8 - count));  // 0 stands before them
  const std::uint64_t high_halves = digits | (digits + kEveryByte * 6);
  if ((high_halves & (kEveryByte * 0xf0)) != 0) return false;
  digits = digits * 10 + (digits >> 8);  // pairs of digits, in every second byte
  constexpr std::uint64_t kPairs = 0x000000ff000000ffu;
  const std::uint64_t outer = (digits & kPairs) * (100 + (std::uint64_t{1000000} << 32));
  const std::uint64_t inner = ((digits >> 16) & kPairs) * (1 + (std::uint64_t{10000} << 32));
  number = static_cast<std::uint32_t>((outer + inner) >> 32);
  return true;
}

/// Whether 8 characters can be read from `from` on; `text_end` may be null, which says no.
[[nodiscard]] inline bool has_eight(const char* from, const char* text_end) {
  return text_end != nullptr && text_end - from >= 8;
}

/// Reads what `parse_integer_id` reads, fast for up to 16 digits where 8 characters can be read.
[[nodiscard, gnu::always_inline]] inline bool parse_integer_id(std::string_view text, const char* text_end,
                                                               std::int64_t& id) {
  const std::size_t count = text.size();
  if (count == 0 || count > 16 || !has_eight(text.data(), text_end) || text[0] == '0')
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

/// Reads what `parse_value` reads where that is not fast: signs, blanks, exponents, many digits.
[[nodiscard]] bool parse_unusual_value(std::string_view text, float& value);

/// Powers of ten that are exact as floats.
inline constexpr std::array<float, 8> kFloatPowers{1e0f, 1e1f, 1e2f, 1e3f, 1e4f, 1e5f, 1e6f, 1e7f};

/// Reads the first `count` (1 to 8) of 8 characters as a decimal number, without a branch for its point:
/// digits, perhaps with a point, though not before them. False for all else, and for 2^24 and more.
[[nodiscard, gnu::always_inline]] inline bool parse_short_value(std::uint64_t eight, std::size_t count,
                                                                float& value) {
  // Below 2^24 the digits are an exact float, like the power of ten, so that the division rounds only once.
  const std::size_t point = std::min(count_before(eight, '.'), count);
  if (point == 0) return false;
  const std::uint64_t before = (std::uint64_t{2} << (8 * point - 1)) - 1;
  const std::uint64_t joined = (eight & before) | (eight >> 8 & ~before);
  const std::size_t digit_count = count - (point < count ? 1 : 0);
  std::uint32_t digits = 0;
  if (!parse_among_eight(joined, digit_count, digits) || digits >= 1u << 24) return false;
  value = static_cast<float>(digits) / kFloatPowers[digit_count - point];
  return true;
}

/// Reads a finite decimal number, blanks around it and one sign allowed, as the nearest 32-bit float.
[[nodiscard, gnu::always_inline]] inline bool parse_value(std::string_view text, float& value,
                                                          const char* text_end = nullptr) {
  const std::size_t count = text.size();
  if (count == 0 || count > 8) return parse_unusual_value(text, value);
  std::uint64_t eight = 0;
  if (has_eight(text.data(), text_end))
    eight = load_eight(text.data());
  else
    for (std::size_t at = 0; at < count; ++at)
      eight |= std::uint64_t{static_cast<std::uint8_t>(text[at])} << (8 * at);
  return parse_short_value(eight, count, value) || parse_unusual_value(text, value);
}

/// What messages expect of a value that keeps_value denies.
inline constexpr const char* kKeptValue = "a number that 32-bit floats hold (`values` f32 takes the nearest)";

/// Compares a value of at least 2^24, or nearer to 0 than floats have all their digits, with its text.
[[nodiscard]] bool is_exact(std::string_view text, float value);

/// Whether what parse_value gave is the value that was written, digits of fractions aside (is_lost).
[[nodiscard, gnu::always_inline]] inline bool keeps_value(std::string_view text, float value) {
  const float magnitude = std::abs(value);
  if (magnitude >= std::numeric_limits<float>::min() && magnitude < 1 << 24) return true;
  return text == "0" || is_exact(text, value);
}

/// The same of parse_time for times of any form.
[[nodiscard]] bool parse_unusual_time(std::string_view text, std::int64_t& time, bool* is_cut,
                                      std::int64_t scale);

/// Reads whole seconds, or whatever unit a time has: an integer of 64 bits, or a decimal number rounded down
/// ("978300760.0", "964982703.5", "1e9"; exact below 2^53), blanks around it and one sign allowed; or a date
/// (parse_date) as seconds. `is_cut` is set where there is a fraction. The time is multiplied by `scale`,
/// which keeps as much of the fraction.
[[nodiscard, gnu::always_inline]] inline bool parse_time(std::string_view text, std::int64_t& time,
                                                         bool* is_cut = nullptr, std::int64_t scale = 1,
                                                         const char* text_end = nullptr) {
  return (scale == 1 && parse_integer_id(text, text_end, time)) ||
         parse_unusual_time(text, time, is_cut, scale);
}

inline constexpr std::int64_t kMinFractionTime = 100'000'000;  ///< seconds: 1973, or 1966
/// By what times are multiplied where they are seconds with fractions.
inline constexpr std::int64_t kFineTimeScale = 1'000'000;
/// Whether a time is as large as seconds since 1970 are.
[[nodiscard]] constexpr bool may_be_seconds(std::int64_t time) {
  constexpr std::int64_t kEnd = 100'000'000'000;
  return (time >= kMinFractionTime && time < kEnd) || (time <= -kMinFractionTime && time > -kEnd);
}

/// Divides a time by its scale, rounded down.
[[nodiscard]] constexpr std::int64_t without_scale(std::int64_t time, std::int64_t scale) {
  return time / scale - (time % scale < 0 ? 1 : 0);
}

/// Multiplies a time by a scale; what 64 bits do not hold becomes their end.
[[nodiscard]] std::int64_t with_scale(std::int64_t time, std::int64_t scale);

/// Reads a day, or a day and a time as ISO 8601 writes them, as whole seconds from 1970 in UTC, rounded down:
/// "2014-01-03", "2014-01-03 17:05", "2014-01-03T17:05:09.5+01:00", with Z, UTC or an offset behind it;
/// without one it is UTC. Or as C and Goodreads write it: "Wed Dec 09 19:39:58 -0800 2015".
[[nodiscard]] bool parse_date(std::string_view text, std::int64_t& seconds);

/// Reads a day (YYYY-MM-DD) as the seconds from 1970 to its beginning, in UTC.
[[nodiscard]] bool parse_day(std::string_view text, std::int64_t& seconds);

/// What a column holds; names as in messages and flags.
enum class RatingField : std::uint8_t { user, item, value, time, other };
constexpr Words<5> words_of(RatingField) { return {"user", "item", "value", "time", "other"}; }

/// The fields of a line by what they hold.
struct RatingFields {
  std::array<std::string_view, 5> text;
  [[nodiscard]] std::string_view operator[](RatingField field) const {
    return text[static_cast<std::size_t>(field)];
  }
};

/// What each column holds, up to the last one that is wanted.
[[nodiscard]] inline std::vector<RatingField> column_fields(const RatingColumns& columns) {
  const std::size_t last =
      std::max({columns.user, columns.item, columns.value.value_or(0), columns.time.value_or(0)});
  std::vector<RatingField> fields(last + 1, RatingField::other);
  fields[columns.user] = RatingField::user;
  fields[columns.item] = RatingField::item;
  if (columns.value) fields[*columns.value] = RatingField::value;
  if (columns.time) fields[*columns.time] = RatingField::time;
  return fields;
}

/// Where the first field at or behind `from` begins that begins with a quote; npos where none does.
[[nodiscard]] std::size_t find_quoted_field(std::string_view line, std::string_view delimiter,
                                            std::size_t from = 0);
/// Whether the field at `at`, which begins with a quote, ends with one: names like "Weird Al" Yankovic do
/// not.
[[nodiscard]] bool ends_in_quote(std::string_view line, std::string_view delimiter, std::size_t at);

/// Why a line could not be split; `at` 0 and no reason: it has `column_count` columns, too few or too many.
struct SplitError {
  std::size_t at = 0;  ///< byte in the line
  std::string reason;
  std::size_t column_count = 0;
};

/// One byte between fields.
class CharDelimiter {
 public:
  /// Bytes of the text that lines are of are readable up to `text_end`.
  CharDelimiter(char delimiter, const char* text_end) : delimiter_(delimiter), text_end_(text_end) {}
  /// Finds the delimiter, or the end.
  [[nodiscard]] const char* find(const char* at, const char* end) const {
    for (; text_end_ - at >= 8; at += 8) {
      const std::size_t found = find_among_eight(load_eight(at), delimiter_);
      if (found < 8 || end - at <= 8) return std::min(at + found, end);
    }
    while (at != end && *at != delimiter_) ++at;
    return at;
  }
  /// Skips a delimiter.
  [[nodiscard]] const char* skip(const char* at, const char*) const { return at + 1; }
  /// Takes from a line what stands at its ends for nothing.
  [[nodiscard]] std::string_view strip(std::string_view line) const { return line; }

 private:
  char delimiter_;
  const char* text_end_;
};

/// Several bytes between fields.
class TextDelimiter {
 public:
  explicit TextDelimiter(std::string_view delimiter) : delimiter_(delimiter) {}
  [[nodiscard]] const char* find(const char* at, const char* end) const {
    const std::string_view rest(at, static_cast<std::size_t>(end - at));
    for (std::size_t from = 0;; ++from) {
      while (from < rest.size() && rest[from] != delimiter_[0]) ++from;
      if (from == rest.size() || rest.substr(from).starts_with(delimiter_)) return at + from;
    }
  }
  [[nodiscard]] const char* skip(const char* at, const char*) const { return at + delimiter_.size(); }
  [[nodiscard]] std::string_view strip(std::string_view line) const { return line; }

 private:
  std::string_view delimiter_;
};

/// Any blanks and tabs between fields.
class BlankDelimiter {
 public:
  [[nodiscard]] static bool is_blank(char c) { return c == ' ' || c == '\t'; }
  [[nodiscard]] const char* find(const char* at, const char* end) const {
    while (at != end && !is_blank(*at)) ++at;
    return at;
  }
  [[nodiscard]] const char* skip(const char* at, const char* end) const {
    while (at != end && is_blank(*at)) ++at;
    return at;
  }
  [[nodiscard]] std::string_view strip(std::string_view line) const {
    while (!line.empty() && is_blank(line.front())) line.remove_prefix(1);
    while (!line.empty() && is_blank(line.back())) line.remove_suffix(1);
    return line;
  }
};

/// Splits lines in which quotes are letters.
template <class Delimiter>
class PlainSplitter {
 public:
  static constexpr bool kQuotes = false;
  PlainSplitter(Delimiter delimiter, const RatingColumns& columns, std::size_t max_columns)
      : delimiter_(delimiter), columns_(column_fields(columns)), max_columns_(max_columns) {}

  /// Gives the wanted fields of a line; false where it has too few columns, or too many.
  [[nodiscard]] bool split(std::string_view line, RatingFields& fields) {
    line = delimiter_.strip(line);
    const char* at = line.data();
    const char* const end = at + line.size();
    for (std::size_t column = 0;; ++column) {
      const char* const stop = delimiter_.find(at, end);
      fields.text[static_cast<std::size_t>(columns_[column])] = {at, static_cast<std::size_t>(stop - at)};
      if (column + 1 == columns_.size()) return stop == end || has_no_more(column + 1, stop, end);
      if (stop == end) {
        error_.column_count = line.empty() ? 0 : column + 1;
        return false;
      }
      at = delimiter_.skip(stop, end);
    }
  }
  [[nodiscard]] const SplitError& error() const { return error_; }
  [[nodiscard]] std::size_t column_count() const { return columns_.size(); }

 private:
  /// Counts the columns behind the wanted ones, from the delimiter at `stop` on.
  [[nodiscard]] bool has_no_more(std::size_t count, const char* stop, const char* end) {
    if (max_columns_ == 0) return true;
    for (; stop != end; ++count) stop = delimiter_.find(delimiter_.skip(stop, end), end);
    error_.column_count = count;
    return count <= max_columns_;
  }

  Delimiter delimiter_;
  std::vector<RatingField> columns_;
  std::size_t max_columns_;  // 0: any number
  SplitError error_;
};

/// Reads the field at `at`, perhaps in quotes, and moves behind it; `field` is in the line or in `unquoted`.
[[nodiscard]] bool read_quoted_field(std::string_view line, std::string_view delimiter, std::size_t& at,
                                     std::string_view& field, std::string& unquoted, SplitError& error);

/// Gives all fields of a line, those up to an error where there is one.
[[nodiscard]] std::vector<std::string> all_fields(std::string_view line, std::string_view delimiter,
                                                  TextQuoting quoting);

/// Splits records in which fields may stand in double quotes.
class QuotedSplitter {
 public:
  static constexpr bool kQuotes = true;
  QuotedSplitter(std::string_view delimiter, const RatingColumns& columns, std::size_t max_columns)
      : delimiter_(delimiter), columns_(column_fields(columns)), max_columns_(max_columns) {}
  /// As above; fields are valid until the next call. All of a record's fields are looked at.
  [[nodiscard]] bool split(std::string_view line, RatingFields& fields);
  [[nodiscard]] const SplitError& error() const { return error_; }
  [[nodiscard]] std::size_t column_count() const { return columns_.size(); }

 private:
  std::string_view delimiter_;
  std::vector<RatingField> columns_;
  std::size_t max_columns_;
  SplitError error_;
  std::array<std::string, 5> unquoted_;  // by what the fields hold
};

}  // namespace chunkhit
