// A line of JSON → its object, names and values. simdjson is included here alone.
#pragma once

#include <simdjson.h>

#include <algorithm>
#include <cstddef>
#include <new>
#include <optional>
#include <string>
#include <string_view>

#include "ratings/rating_fields.h"
#include "ratings/rating_text.h"
#include "types/rating_block.h"

namespace chunkhit {

inline constexpr const char* kExpectedObject = "line: expected a JSON object";
/// Says what is wrong with a line that is no object.
inline LineProblem problem_of(simdjson::error_code error, std::string_view line) {
  switch (error) {
    case simdjson::MEMALLOC:
      throw std::bad_alloc();
    case simdjson::UTF8_ERROR:
      return {std::string("line") + kNotUtf8};
    case simdjson::UNCLOSED_STRING:
      return {kExpectedObject, "a text without its end"};
    case simdjson::UNESCAPED_CHARS:
      return {kExpectedObject, "a control character in a text"};
    case simdjson::STRING_ERROR:
      return {kExpectedObject, "an escape that stands for no character"};
    case simdjson::INCOMPLETE_ARRAY_OR_OBJECT:
      return {kExpectedObject, "no } at its end"};
    default:
      return {kExpectedObject, found_text(line)};
  }
}

/// Parses lines one by one. A few bytes behind a line are read, too: the last lines of a text are copied.
class JsonLine {
 public:
  explicit JsonLine(std::string_view text) : text_end_(text.data() + text.size()) {}

  /// Hands the object of a line to `read`, which goes through all its fields; returns what is wrong.
  template <class Read>
  [[nodiscard]] std::optional<LineProblem> read(std::string_view line, Read read) {
    text_ = line;
    is_copied_ =
        text_end_ - line.data() < static_cast<std::ptrdiff_t>(line.size() + simdjson::SIMDJSON_PADDING);
    if (is_copied_) {
      copy_.assign(line).append(simdjson::SIMDJSON_PADDING, ' ');
      text_ = std::string_view(copy_).substr(0, line.size());
    }
    const simdjson::error_code error = read_object(read);
    if (error == simdjson::SUCCESS) return std::nullopt;
    return problem_of(error, line);
  }
  /// The line, or its copy, which the next one overwrites.
  [[nodiscard]] std::string_view text() const { return text_; }
  [[nodiscard]] bool is_copied() const { return is_copied_; }

 private:
  template <class Read>
  simdjson::error_code read_object(Read read) {
    constexpr std::size_t kMinCapacity = 1 << 14;
    if (parser_.capacity() < text_.size())
      if (const simdjson::error_code error = parser_.allocate(std::max(2 * text_.size(), kMinCapacity)))
        return error;
    simdjson::ondemand::document document;
    const std::size_t bytes = text_.size() + simdjson::SIMDJSON_PADDING;
    if (const simdjson::error_code error = parser_.iterate(text_.data(), text_.size(), bytes).get(document))
      return error;
    simdjson::ondemand::object object;
    if (const simdjson::error_code error = document.get_object().get(object)) return error;
    if (const simdjson::error_code error = read(object)) return error;
    const char* behind = nullptr;
    const bool is_all = document.current_location().get(behind) == simdjson::OUT_OF_BOUNDS;
    return is_all ? simdjson::SUCCESS : simdjson::TAPE_ERROR;
  }

  const char* text_end_;
  std::string_view text_;
  bool is_copied_ = false;
  std::string copy_;
  simdjson::ondemand::parser parser_;
};

/// Reads a field's name. Those without escapes, nearly all, are looked at where they stand.
inline simdjson::error_code read_key(simdjson::ondemand::field& field, std::string_view& key) {
  const char* const begin = field.key().raw();
  const char* end = begin;
  for (std::size_t found = 8; found == 8; end += found) found = find_among_eight(load_eight(end), '"');
  key = {begin, static_cast<std::size_t>(end - begin)};
  return key.find('\\') == std::string_view::npos ? simdjson::SUCCESS : field.unescaped_key().get(key);
}

/// What a line has in one field.
struct JsonValue {
  std::size_t count = 0;      ///< how many fields of the name the line has
  std::string_view token;     ///< as written; of objects and arrays the bracket
  std::string_view text;      ///< without quotes and escapes
  bool is_unescaped = false;  ///< `text` is a copy, which the next line overwrites
  [[nodiscard]] bool is_text() const { return token.starts_with('"'); }
  /// Whether it is a number as JSON writes them, or a text.
  [[nodiscard]] bool is_plain() const;
};

/// Returns a token without the blanks behind it.
inline std::string_view trimmed(std::string_view token) {
  return token.substr(0, token.find_last_not_of(" \t\r\n") + 1);
}

inline bool JsonValue::is_plain() const {
  if (is_text()) return true;
  std::string_view rest = token.substr(token.starts_with('-') ? 1 : 0);
  const auto take_digits = [&rest] {
    const std::size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
    rest.remove_prefix(digits);
    return digits > 0;
  };
  const bool has_zero = rest.starts_with('0');
  const std::size_t whole = rest.size();
  if (!take_digits() || (has_zero && whole - rest.size() > 1)) return false;
  if (rest.starts_with('.') && (rest.remove_prefix(1), !take_digits())) return false;
  if (!rest.starts_with('e') && !rest.starts_with('E')) return rest.empty();
  rest.remove_prefix(1);
  if (rest.starts_with('+') || rest.starts_with('-')) rest.remove_prefix(1);
  return take_digits() && rest.empty();
}

/// Reads a value where it stands in the line; the parser may go on behind it.
inline simdjson::error_code read_value(simdjson::ondemand::value value, JsonValue& found) {
  found.token = trimmed(value.raw_json_token());
  found.text = found.token;
  if (!found.is_text()) return simdjson::SUCCESS;
  found.text = found.token.substr(1, found.token.size() - 2);
  if (found.text.find('\\') == std::string_view::npos) return simdjson::SUCCESS;
  found.is_unescaped = true;
  return value.get_string().get(found.text);
}

}  // namespace chunkhit
