#include "input/bad_line.h"

#include "base/words.h"

namespace chunkhit {
namespace {

constexpr std::size_t kTextBytes = 200;
constexpr std::size_t kFieldBytes = 40;

}  // namespace

void add_bad_line(RatingBlock& block, std::uint64_t line, std::uint64_t column, const std::string& reason,
                  std::string_view text) {
  if (block.bad_lines.size() == kMaxBadLines) {
    ++block.more_bad_lines[bad_line_kind(reason)];
    return;
  }
  block.bad_lines.push_back({line, column, reason, std::string(text.substr(0, kTextBytes))});
}

std::uint64_t bad_line_count(const RatingBlock& block) {
  std::uint64_t count = block.bad_lines.size();
  for (const auto& [kind, more] : block.more_bad_lines) count += more;
  return count;
}

std::string bad_line_kind(std::string_view reason) {
  return std::string(reason.substr(0, reason.find(", found ")));
}

std::string found_text(std::string_view field) {
  if (field.empty()) return "nothing";
  const bool is_long = field.size() > kFieldBytes;
  return '"' + printable_text(field.substr(0, kFieldBytes)) + (is_long ? "\"..." : "\"");
}

}  // namespace chunkhit
