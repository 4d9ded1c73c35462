#include "read/item_counts.h"

#include <algorithm>
#include <charconv>
#include <system_error>

#include "chunkhit/error.h"

namespace chunkhit {
namespace {

[[noreturn]] void refuse_line(const std::string& path) {
  throw Error(ErrorCode::bad_data, path + ": expected column,ratings,item");
}

/// The next number of a line.
std::uint64_t take_number(std::string_view& text, const std::string& path) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto length = static_cast<std::size_t>(end - text.data());
  if (error != std::errc() || length >= text.size() || text[length] != ',') refuse_line(path);
  text.remove_prefix(length + 1);
  return number;
}

/// Skips an id, quoted (RFC 4180) or not, and the end of its line.
void skip_id(std::string_view& text, const std::string& path) {
  const bool quoted = text.starts_with('"');
  const char stop = quoted ? '"' : '\n';
  std::size_t at = quoted ? 1 : 0;
  while (at < text.size() && (text[at] != stop || text.substr(at).starts_with("\"\"")))
    at += quoted && text[at] == '"' ? 2 : 1;
  if (quoted) ++at;
  if (at >= text.size() || text[at] != '\n') refuse_line(path);
  text.remove_prefix(at + 1);
}

}  // namespace

std::vector<std::uint64_t> parse_item_counts(std::string_view text, const std::string& path,
                                             std::uint64_t column_count) {
  text.remove_prefix(std::min(text.size(), text.find('\n') + 1));
  std::vector<std::uint64_t> counts;
  while (!text.empty()) {
    if (take_number(text, path) != counts.size())
      throw Error(ErrorCode::bad_data, path + ": columns are not counted up");
    counts.push_back(take_number(text, path));
    skip_id(text, path);
  }
  if (counts.size() != column_count)
    throw Error(ErrorCode::bad_data, path + ": " + std::to_string(counts.size()) + " items, expected " +
                                         std::to_string(column_count));
  return counts;
}

}  // namespace chunkhit
