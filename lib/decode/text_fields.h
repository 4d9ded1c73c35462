// Fields of a line of numbers, separated by blanks, with the column where each begins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace chunkhit {

/// Gives the fields of a line one by one.
class FieldCursor {
 public:
  explicit FieldCursor(std::string_view line) : line_(line) {}
  /// The next field; empty at the end of the line.
  [[nodiscard]] std::string_view next() {
    begin_ = end_;
    while (begin_ < line_.size() && is_blank(line_[begin_])) ++begin_;
    end_ = begin_;
    while (end_ < line_.size() && !is_blank(line_[end_])) ++end_;
    return line_.substr(begin_, end_ - begin_);
  }
  /// The column, in bytes from 1, where the field that was given last begins.
  [[nodiscard]] std::uint64_t column() const { return begin_ + 1; }

 private:
  static bool is_blank(char c) { return c == ' ' || c == '\t'; }
  std::string_view line_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

/// Reads decimal digits, nothing else, as a number below 2^63.
[[nodiscard]] std::optional<std::uint64_t> parse_count(std::string_view field);

}  // namespace chunkhit
