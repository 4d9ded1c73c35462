// A line of a table of ratings → the fields that are wanted.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "input/eight_bytes.h"
#include "input/rating_text.h"

namespace chunkhit {

/// What a column holds; names as in messages and flags.
enum class RatingField : std::uint8_t { user, item, value, time, other };
inline constexpr std::array<std::string_view, 5> kRatingFieldNames{"user", "item", "value", "time", "other"};

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
                                                  Quoting quoting);

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
