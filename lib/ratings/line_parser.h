// Base of the parsers of formats whose lines are no table.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "ratings/id_map.h"
#include "ratings/rating_fields.h"
#include "ratings/rating_text.h"

namespace chunkhit {

/// Reads lines, checks ids and reports bad lines.
class LineParser {
 public:
  LineParser(std::string_view text, RatingBlock& block, BlockMaps& maps)
      : block_(block),
        lines_(text),
        users_(block.users, maps.users, maps.known_users),
        items_(block.items, maps.items, maps.known_items) {
    clear_block(block);
  }

 protected:
  [[nodiscard]] bool next() {
    while (lines_.next(line_)) {
      if (line_.size() > kMaxLineBytes) {
        add_long_line(block_, lines_.line_count(), line_);
        break;
      }
      if (line_.find_first_not_of(" \t") != std::string_view::npos) return true;
      ++block_.blank_lines;
    }
    block_.line_count = lines_.line_count();
    users_.finish();
    items_.finish();
    return false;
  }
  void refuse(const char* at, LineProblem problem) {
    add_bad_line(block_, lines_.line_count(), static_cast<std::uint64_t>(at - line_.data()) + 1,
                 std::move(problem), line_);
  }
  [[nodiscard]] bool is_id(std::string_view id, const char* what) {
    if (!is_utf8(id)) {
      refuse(id.data(), {std::string(what) + kNotUtf8});
      return false;
    }
    if (!is_missing_id(id) && id.find('\0') == std::string_view::npos) return true;
    refuse(id.data(), {std::string(what) + ": expected an id", found_text(id)});
    return false;
  }
  [[nodiscard]] IdColumn& users() { return users_; }
  [[nodiscard]] IdColumn& items() { return items_; }

  RatingBlock& block_;
  std::string_view line_;

 private:
  LineCursor lines_;
  IdColumn users_;
  IdColumn items_;
};

}  // namespace chunkhit
