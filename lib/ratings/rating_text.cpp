#include "ratings/rating_text.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/words.h"
#include "ratings/id_map.h"
#include "ratings/line_parser.h"
#include "ratings/number_lines.h"
#include "ratings/rating_fields.h"
#include "types/enum_names.h"

namespace chunkhit {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

constexpr const char* kLateQuote =
    "quotes: a field begins with one, and none of the first lines does; give `quote` double, or none where "
    "quotes are letters";
constexpr const char* kWholeQuotes =
    "quotes: a field begins and ends with one, the first that begins with one does not; give `quote` double, "
    "or none where quotes are letters";
constexpr const char* kBlanksInQuotes =
    "quotes: a field stands in quotes between blanks; give `delimiter` ' ' `quote` double, or `quote` none "
    "where quotes are letters";

/// Gathers numbers before they are appended to a vector: its push_back is a call for each.
template <class Number>
class GatheredNumbers {
 public:
  explicit GatheredNumbers(std::vector<Number>& all) : all_(all) {}
  void append(Number number) {
    if (count_ == numbers_.size()) finish();
    numbers_[count_++] = number;
  }
  void append(std::span<const Number> numbers) {
    finish();
    all_.insert(all_.end(), numbers.begin(), numbers.end());
  }
  /// Takes the number back that was appended last.
  void take_back() { --count_; }
  [[gnu::noinline]] void finish() {
    all_.insert(all_.end(), numbers_.data(), numbers_.data() + count_);
    count_ = 0;
  }

 private:
  std::vector<Number>& all_;
  std::array<Number, 1024> numbers_;
  std::size_t count_ = 0;
};

/// Parses a block of lines. The splitter is a template parameter, so that the choice of delimiter and quotes
/// is made once for a block and not for each line.
template <class Splitter>
class TextParser {
 public:
  TextParser(std::string_view text, const RatingTextSpec& spec, Splitter splitter, RatingBlock& block,
             BlockMaps& maps)
      : text_(text),
        spec_(spec),
        splitter_(std::move(splitter)),
        block_(block),
        users_(block.users, maps.users, maps.known_users),
        items_(block.items, maps.items, maps.known_items),
        values_(block.values),
        times_(block.times) {}

  void parse() {
    // If the whole block is UTF-8, its fields are too, unless the delimiter cuts within a character.
    const TextMarks marks = find_marks(text_);
    checks_utf8_ = !(marks.is_ascii || is_utf8(text_)) || !is_utf8(spec_.delimiter);
    has_nul_ = marks.has_nul;
    watches_quotes_ =
        (spec_.quoting == TextQuoting::automatic || spec_.quoting == TextQuoting::letters) && marks.has_quote;
    if (!Splitter::kQuotes && !has_nul_ && !watches_quotes_ && NumberLines::can_read(text_, spec_))
      number_lines_.emplace(text_, spec_);
    LineCursor lines(text_);
    while (take_numbers(lines), next_line(lines)) {
      if (line_.size() > kMaxLineBytes) {
        add_long_line(block_, line_number_, line_);
        break;
      }
      if (!is_skipped()) parse_line();
    }
    block_.line_count = lines.line_count();
    values_.finish();
    times_.finish();
    users_.finish();
    items_.finish();
  }

 private:
  bool next_line(LineCursor& lines) {
    line_number_ = lines.line_count() + 1;
    return Splitter::kQuotes ? lines.next_record(line_) : lines.next(line_);
  }

  /// Takes the lines that are numbers alone, up to the first other one.
  void take_numbers(LineCursor& lines) {
    if (!users_.takes_numbers() || !items_.takes_numbers()) number_lines_.reset();
    NumberRatings ratings;
    while (number_lines_) {
      const std::size_t begin = text_.size() - lines.rest_bytes();
      const std::size_t end = number_lines_->read(begin, ratings);
      lines.skip(end - begin, ratings.count);
      users_.append(std::span(ratings.users).first(ratings.count));
      items_.append(std::span(ratings.items).first(ratings.count));
      if (spec_.columns.value) values_.append(std::span(ratings.values).first(ratings.count));
      if (spec_.columns.time) times_.append(std::span(ratings.times).first(ratings.count));
      if (!ratings.is_other_next) continue;
      // Where most lines are others, trying them first costs more than it gains.
      if (++other_lines_ > kFewOtherLines + lines.line_count() / 16) number_lines_.reset();
      return;
    }
  }

  bool is_skipped() {
    if (line_.empty()) {
      ++block_.blank_lines;
    } else if (!spec_.comment.empty() && line_.starts_with(spec_.comment)) {
      ++block_.comment_lines;
    } else if (is_header()) {
      ++block_.header_lines;
    } else {
      return false;
    }
    return true;
  }

  /// Every file may repeat the header of the first, with or without a byte order mark.
  [[nodiscard]] bool is_header() const {
    const std::size_t bytes = spec_.header.size();
    if (bytes == 0) return false;
    if (line_.size() == bytes) return line_ == spec_.header;
    return line_.size() == bytes + kByteOrderMark.size() && line_.starts_with(kByteOrderMark) &&
           line_.ends_with(spec_.header);
  }

  /// Parses one rating. Values and times are appended before the ids, so a bad time takes the value back.
  void parse_line() {
    RatingFields fields;
    if (watches_quotes_)
      if (const std::size_t at = unexpected_quote(); at != std::string_view::npos)
        return refuse(at, {unexpected_quote_text()});
    if (!splitter_.split(line_, fields)) return refuse_split();
    if (has_nul_ && line_.find('\0') != std::string_view::npos)
      return refuse(line_.find('\0'), {"line: expected text", "a NUL byte"});
    const char* const text_end = Splitter::kQuotes ? nullptr : text_.data() + text_.size();
    float value = 1;
    std::int64_t time = 0;
    const std::string_view user = fields[RatingField::user];
    const std::string_view item = fields[RatingField::item];
    if (is_missing_id(user)) return refuse_field(RatingField::user, user, "an id");
    if (is_missing_id(item)) return refuse_field(RatingField::item, item, "an id");
    if (checks_utf8_ && !is_utf8(user)) return refuse_utf8(RatingField::user, user);
    if (checks_utf8_ && !is_utf8(item)) return refuse_utf8(RatingField::item, item);
    if (spec_.columns.value) {
      const std::string_view text = fields[RatingField::value];
      if (!parse_value(text, value, text_end))
        return refuse_field(RatingField::value, text, expected_number(text));
      if (!spec_.rounds_values && !keeps_value(text, value))
        return refuse_field(RatingField::value, text, kKeptValue);
      values_.append(value);
    }
    if (spec_.columns.time) {
      const std::string_view text = fields[RatingField::time];
      bool is_cut = false;
      if (!parse_time(text, time, &is_cut, spec_.time_scale, text_end)) {
        if (spec_.columns.value) values_.take_back();
        return refuse_field(RatingField::time, text, "a number or YYYY-MM-DD[THH:MM:SS]");
      }
      times_.append(time);
      block_.cut_times += is_cut ? 1 : 0;
    }
    // Unquoted fields are in the splitter's buffer, which the next line overwrites: they are copied.
    if (Splitter::kQuotes) {
      users_.append_fleeting(user);
      items_.append_fleeting(item);
    } else {
      users_.append(user, text_end);
      items_.append(item, text_end);
    }
  }

  /// Names the way out for a number with the other decimal mark.
  [[nodiscard]] const char* expected_number(std::string_view text) const {
    std::string pointed(text);
    std::ranges::replace(pointed, ',', '.');
    float value = 0;
    return parse_value(pointed, value) ? "a number, whose decimal mark is ." : "a number";
  }

  /// Finds the first field whose quotes are ambiguous; npos if there is none.
  [[nodiscard]] std::size_t unexpected_quote() const {
    const std::string& delimiter = spec_.delimiter;
    std::size_t at = find_quoted_field(line_, delimiter);
    if (spec_.quoting == TextQuoting::letters)
      while (at != std::string_view::npos && !ends_in_quote(line_, delimiter, at))
        at = find_quoted_field(line_, delimiter, at + 1);
    return at;
  }

  [[nodiscard]] const char* unexpected_quote_text() const {
    if (spec_.delimiter == kBlanks) return kBlanksInQuotes;
    return spec_.quoting == TextQuoting::letters ? kWholeQuotes : kLateQuote;
  }

  void refuse(std::size_t at, LineProblem problem) {
    add_bad_line(block_, line_number_, at + 1, std::move(problem), line_);
  }

  /// Reports why a line cannot be split; a line of blanks alone counts as blank.
  void refuse_split() {
    const SplitError& error = splitter_.error();
    if (!error.reason.empty()) return refuse(error.at, {error.reason});
    if (line_.find_first_not_of(" \t") == std::string_view::npos) {
      ++block_.blank_lines;
      return;
    }
    const bool too_few = error.column_count < splitter_.column_count();
    const std::string expected = too_few
                                     ? "at least " + std::to_string(splitter_.column_count()) + " columns"
                                     : std::to_string(spec_.column_count) + " columns, as in the first line";
    const bool has_quotes = !Splitter::kQuotes && line_.find('"') != std::string_view::npos;
    refuse(line_.size(), {"line: expected " + expected,
                          std::to_string(error.column_count) +
                              (has_quotes ? "; `quote` double keeps fields in quotes whole" : "")});
  }

  /// Returns where a field begins in its line, for the column of a message. Unquoted copies are counted off.
  [[nodiscard]] std::size_t offset_of(RatingField field, std::string_view text) const {
    const bool is_inside = text.data() >= line_.data() && text.data() <= line_.data() + line_.size();
    if (is_inside) return static_cast<std::size_t>(text.data() - line_.data());
    const RatingColumns& columns = spec_.columns;
    const std::array all{columns.user, columns.item, columns.value.value_or(0), columns.time.value_or(0)};
    std::size_t left = all[static_cast<std::size_t>(field)], at = 0;
    for (bool is_quoted = false; left > 0 && at < line_.size(); ++at) {
      is_quoted ^= line_[at] == '"';
      left -= !is_quoted && line_.substr(at).starts_with(spec_.delimiter) ? 1 : 0;
    }
    return left == 0 && at > 0 ? at + spec_.delimiter.size() - 1 : at;
  }

  void refuse_field(RatingField field, std::string_view text, const char* expected) {
    refuse(offset_of(field, text), {name_of(field) + ": expected " + expected, found_text(text)});
  }

  // The bytes found are not shown: messages are UTF-8 as well.
  void refuse_utf8(RatingField field, std::string_view text) {
    refuse(offset_of(field, text), {name_of(field) + kNotUtf8});
  }

  static constexpr std::uint64_t kFewOtherLines = 64;

  std::string_view text_;
  const RatingTextSpec& spec_;
  Splitter splitter_;
  RatingBlock& block_;
  IdColumn users_;
  IdColumn items_;
  GatheredNumbers<float> values_;
  GatheredNumbers<std::int64_t> times_;
  std::optional<NumberLines> number_lines_;
  std::uint64_t other_lines_ = 0;  // which it could not read
  bool has_nul_ = false;
  bool checks_utf8_ = false;
  bool watches_quotes_ = false;  // their meaning is not given, and some are there
  std::string_view line_;
  std::uint64_t line_number_ = 0;
};

template <class Delimiter>
void parse_plain(std::string_view text, const RatingTextSpec& spec, Delimiter delimiter, RatingBlock& block,
                 BlockMaps& maps) {
  TextParser(text, spec, PlainSplitter(delimiter, spec.columns, spec.column_count), block, maps).parse();
}

}  // namespace

void parse_rating_text(std::string_view text, const RatingTextSpec& spec, RatingBlock& block,
                       BlockMaps* kept) {
  BlockMaps own;
  BlockMaps& maps = kept != nullptr ? *kept : own;
  clear_block(block);
  if (spec.quoting == TextQuoting::double_quote)
    TextParser(text, spec, QuotedSplitter(spec.delimiter, spec.columns, spec.column_count), block, maps)
        .parse();
  else if (spec.delimiter == kBlanks)
    parse_plain(text, spec, BlankDelimiter(), block, maps);
  else if (spec.delimiter.size() == 1)
    parse_plain(text, spec, CharDelimiter(spec.delimiter[0], text.data() + text.size()), block, maps);
  else
    parse_plain(text, spec, TextDelimiter(spec.delimiter), block, maps);
}

namespace {

constexpr std::size_t kTextBytes = 200;
constexpr std::size_t kFieldBytes = 40;

}  // namespace

/// Keeps the first bad lines with their text and only counts the others by kind, so that memory is bounded.
void add_bad_line(RatingBlock& block, std::uint64_t line, std::uint64_t column, LineProblem problem,
                  std::string_view text) {
  if (block.bad_lines.size() == kMaxBadLines) {
    ++block.more_bad_lines[problem.expected];
    return;
  }
  block.bad_lines.push_back({line, column, std::move(problem), std::string(text.substr(0, kTextBytes))});
}

void add_long_line(RatingBlock& block, std::uint64_t line, std::string_view text) {
  add_bad_line(block, line, 1, {"line: expected at most 1 MiB", "more"}, text);
  block.ends_with_long_line = true;
}

std::uint64_t bad_line_count(const RatingBlock& block) {
  std::uint64_t count = block.bad_lines.size();
  for (const auto& [kind, more] : block.more_bad_lines) count += more;
  return count;
}

std::string found_text(std::string_view field) {
  if (field.empty()) return "nothing";
  const bool is_long = field.size() > kFieldBytes;
  return '"' + printable_text(field.substr(0, kFieldBytes)) + (is_long ? "\"..." : "\"");
}

namespace {

/// Reads lines "USER ITEM ITEM …". One bad id rejects the whole line.
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

/// Reads the lines "ITEM:" and "USER,VALUE,DATE" of the Netflix Prize; blocks are parsed independently, so
/// each is given the item that its first lines belong to.
class NetflixParser : LineParser {
 public:
  NetflixParser(std::string_view text, std::optional<std::int64_t> item, RatingBlock& block, BlockMaps& maps)
      : LineParser(text, block, maps), item_(item ? std::to_string(*item) : std::string()) {}
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
      return refuse(line_.data(), {"line: expected USER,VALUE,YYYY-MM-DD or ITEM:", found_text(line_)});
    if (item_.empty())
      return refuse(line_.data(), {"line: expected ITEM: before ratings", found_text(line_)});
    const std::string_view user = line_.substr(0, first);
    const std::string_view rating = line_.substr(first + 1, second - first - 1);
    const std::string_view day = line_.substr(second + 1);
    float value = 0;
    std::int64_t time = 0;
    if (!is_id(user, "user")) return;
    if (!parse_value(rating, value))
      return refuse(rating.data(), {"value: expected a number", found_text(rating)});
    if (!parse_day(day, time)) return refuse(day.data(), {"time: expected YYYY-MM-DD", found_text(day)});
    users().append(user);
    items().append_fleeting(item_);
    block_.values.push_back(value);
    block_.times.push_back(time);
  }

  std::string item_;
};

}  // namespace

void parse_user_items(std::string_view text, RatingBlock& block, BlockMaps* kept) {
  BlockMaps own;
  UserItemsParser(text, block, kept != nullptr ? *kept : own).parse();
}

void parse_netflix(std::string_view text, std::optional<std::int64_t> item, RatingBlock& block,
                   BlockMaps* kept) {
  BlockMaps own;
  NetflixParser(text, item, block, kept != nullptr ? *kept : own).parse();
}

/// Searches backwards, because only the last item of a block matters for the next one.
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
