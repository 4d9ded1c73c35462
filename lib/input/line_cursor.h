// Lines of a piece of text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace chunkhit {

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

}  // namespace chunkhit
