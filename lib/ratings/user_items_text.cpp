#include "ratings/user_items_text.h"

#include <string>
#include <vector>

#include "base/text.h"
#include "ratings/id_map.h"
#include "ratings/rating_fields.h"
#include "ratings/rating_text.h"

namespace chunkhit {
namespace {

/// What both kinds of line need: the block, its columns of ids, the line at hand.
class LineParser {
 public:
  LineParser(std::string_view text, RatingBlock& block) : block_(block), lines_(text) { clear_block(block); }

 protected:
  [[nodiscard]] bool next() {
    while (lines_.next(line_)) {
      if (line_.size() > kMaxLineBytes) {
        refuse(line_.data(), std::string(kLongLine));
        break;
      }
      if (line_.find_first_not_of(" \t") != std::string_view::npos) return true;
      ++block_.blank_lines;
    }
    block_.line_count = lines_.line_count();
    users_.finish(block_.users);
    items_.finish(block_.items);
    return false;
  }
  void refuse(const char* at, const std::string& reason) {
    add_bad_line(block_, lines_.line_count(), static_cast<std::uint64_t>(at - line_.data()) + 1, reason,
                 line_);
  }
  [[nodiscard]] bool is_id(std::string_view id, const char* what) {
    if (!is_utf8(id)) {
      refuse(id.data(), std::string(what) + ": expected UTF-8");
      return false;
    }
    if (!is_missing_id(id) && id.find('\0') == std::string_view::npos) return true;
    refuse(id.data(), std::string(what) + ": expected an id, found " + found_text(id));
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

class UserItemsParser : LineParser {
 public:
  using LineParser::LineParser;
  void parse() {
    while (next()) {
      split();
      bool all_are_ids = is_id(words_[0], "user");
      for (std::size_t at = 1; all_are_ids && at < words_.size(); ++at)
        all_are_ids = is_id(words_[at], "item");
      for (std::size_t at = 1; all_are_ids && at < words_.size(); ++at) {
        users().append(words_[0]);
        items().append(words_[at]);
      }
    }
  }

 private:
  void split() {
    const BlankDelimiter blanks;
    const std::string_view line = blanks.strip(line_);
    const char* const end = line.data() + line.size();
    words_.clear();
    for (const char* at = line.data(); at != end;) {
      const char* const stop = blanks.find(at, end);
      words_.emplace_back(at, static_cast<std::size_t>(stop - at));
      at = blanks.skip(stop, end);
    }
  }

  std::vector<std::string_view> words_;
};

/// Reads "ITEM:".
bool parse_item_line(std::string_view line, std::int64_t& item) {
  return line.ends_with(':') && parse_integer_id(line.substr(0, line.size() - 1), item);
}

class NetflixParser : LineParser {
 public:
  NetflixParser(std::string_view text, std::optional<std::int64_t> item, RatingBlock& block)
      : LineParser(text, block), item_(item ? std::to_string(*item) : std::string()) {}
  void parse() {
    std::int64_t item = 0;
    while (next()) {
      if (parse_item_line(line_, item))
        item_ = std::to_string(item);
      else
        parse_rating();
    }
  }

 private:
  void parse_rating() {
    const std::size_t first = line_.find(',');
    const std::size_t second = first == std::string_view::npos ? first : line_.find(',', first + 1);
    if (second == std::string_view::npos)
      return refuse(line_.data(),
                    "line: expected USER,VALUE,YYYY-MM-DD or ITEM:, found " + found_text(line_));
    if (item_.empty())
      return refuse(line_.data(), "line: expected ITEM: before ratings, found " + found_text(line_));
    const std::string_view user = line_.substr(0, first);
    const std::string_view rating = line_.substr(first + 1, second - first - 1);
    const std::string_view day = line_.substr(second + 1);
    float value = 0;
    std::int64_t time = 0;
    if (!is_id(user, "user")) return;
    if (!parse_value(rating, '.', value))
      return refuse(rating.data(), "value: expected a number, found " + found_text(rating));
    if (!parse_day(day, time))
      return refuse(day.data(), "time: expected YYYY-MM-DD, found " + found_text(day));
    users().append(user);
    items().append_fleeting(item_, block_.items);
    block_.values.push_back(value);
    block_.times.push_back(time);
  }

  std::string item_;
};

}  // namespace

void parse_user_items(std::string_view text, RatingBlock& block) { UserItemsParser(text, block).parse(); }

void parse_netflix(std::string_view text, std::optional<std::int64_t> item, RatingBlock& block) {
  NetflixParser(text, item, block).parse();
}

std::optional<std::int64_t> last_netflix_item(std::string_view text, std::optional<std::int64_t> item) {
  std::int64_t found = 0;
  for (std::size_t colon = text.rfind(':'); colon != std::string_view::npos;) {
    const std::size_t begin = text.rfind('\n', colon) + 1;
    std::string_view line = text.substr(begin, text.find('\n', colon) - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (parse_item_line(line, found)) return found;
    colon = begin == 0 ? std::string_view::npos : text.rfind(':', begin - 1);
  }
  return item;
}

}  // namespace chunkhit
