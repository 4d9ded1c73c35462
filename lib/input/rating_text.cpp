#include "input/rating_text.h"

#include <utility>

#include "input/bad_line.h"
#include "input/id_column.h"
#include "input/line_cursor.h"
#include "input/rating_fields.h"
#include "input/rating_number.h"
#include "input/utf8.h"

namespace chunkhit {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

constexpr const char* kLateQuote =
    "quotes: a field begins with one, and none of the first lines does; give --quote double, or none where "
    "quotes are letters";
constexpr const char* kWholeQuotes =
    "quotes: a field begins and ends with one, the first that begins with one does not; give --quote double, "
    "or "
    "none where quotes are letters";
constexpr const char* kBlanksInQuotes =
    "quotes: a field stands in quotes between blanks; give --delimiter ' ' --quote double, or --quote none "
    "where "
    "quotes are letters";

template <class Splitter>
class TextParser {
 public:
  TextParser(std::string_view text, const RatingTextSpec& spec, Splitter splitter, RatingBlock& block)
      : text_(text), spec_(spec), splitter_(std::move(splitter)), block_(block) {
    // Fields that were unquoted are not in the text.
    if (!Splitter::kQuotes) readable_end_ = text.data() + text.size();
  }

  void parse() {
    // Where all is UTF-8, so are its fields, unless they are cut within a character.
    checks_utf8_ = !is_utf8(text_) || !is_utf8(spec_.delimiter);
    has_nul_ = text_.find('\0') != std::string_view::npos;
    watches_quotes_ = (spec_.quoting == Quoting::automatic || spec_.quoting == Quoting::letters) &&
                      text_.find('"') != std::string_view::npos;
    LineCursor lines(text_);
    while (next_line(lines)) {
      if (line_.size() > kMaxLineBytes) {
        refuse(0, std::string(kLongLine));
        break;
      }
      if (!is_skipped()) parse_line();
    }
    block_.line_count = lines.line_count();
    users_.finish(block_.users);
    items_.finish(block_.items);
  }

 private:
  bool next_line(LineCursor& lines) {
    line_number_ = lines.line_count() + 1;
    return Splitter::kQuotes ? lines.next_record(line_) : lines.next(line_);
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

  [[nodiscard]] bool is_header() const {
    const std::size_t bytes = spec_.header.size();
    if (bytes == 0) return false;
    if (line_.size() == bytes) return line_ == spec_.header;
    return line_.size() == bytes + kByteOrderMark.size() && line_.starts_with(kByteOrderMark) &&
           line_.ends_with(spec_.header);
  }

  void parse_line() {
    RatingFields fields;
    if (watches_quotes_)
      if (const std::size_t at = unexpected_quote(); at != std::string_view::npos)
        return refuse(at, unexpected_quote_text());
    if (!splitter_.split(line_, fields)) return refuse_split();
    if (has_nul_ && line_.find('\0') != std::string_view::npos)
      return refuse(line_.find('\0'), "line: expected text, found a NUL byte");
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
      if (!parse_value(text, spec_.decimal_point, readable_end_, value))
        return refuse_field(RatingField::value, text, "a number");
      if (!spec_.rounds_values && !keeps_value(text, spec_.decimal_point, value))
        return refuse_field(RatingField::value, text, kKeptValue);
      block_.values.push_back(value);
    }
    if (spec_.columns.time) {
      const std::string_view text = fields[RatingField::time];
      if (!parse_time(text, spec_.decimal_point, readable_end_, time)) {
        if (spec_.columns.value) block_.values.pop_back();
        return refuse_field(RatingField::time, text, "a number or YYYY-MM-DD[THH:MM:SS]");
      }
      block_.times.push_back(time);
    }
    if (Splitter::kQuotes) {
      users_.append_fleeting(user, block_.users);
      items_.append_fleeting(item, block_.items);
    } else {
      users_.append(user, readable_end_);
      items_.append(item, readable_end_);
    }
  }

  /// Where a field begins whose quotes may be letters or not; npos where none does.
  [[nodiscard]] std::size_t unexpected_quote() const {
    const std::string& delimiter = spec_.delimiter;
    std::size_t at = find_quoted_field(line_, delimiter);
    if (spec_.quoting == Quoting::letters)
      while (at != std::string_view::npos && !ends_in_quote(line_, delimiter, at))
        at = find_quoted_field(line_, delimiter, at + 1);
    return at;
  }

  [[nodiscard]] const char* unexpected_quote_text() const {
    if (spec_.delimiter == kBlanks) return kBlanksInQuotes;
    return spec_.quoting == Quoting::letters ? kWholeQuotes : kLateQuote;
  }

  void refuse(std::size_t at, const std::string& reason) {
    add_bad_line(block_, line_number_, at + 1, reason, line_);
  }

  void refuse_split() {
    const SplitError& error = splitter_.error();
    if (!error.reason.empty()) return refuse(error.at, error.reason);
    if (line_.find_first_not_of(" \t") == std::string_view::npos) {
      ++block_.blank_lines;
      return;
    }
    const bool too_few = error.column_count < splitter_.column_count();
    const std::string expected = too_few
                                     ? "at least " + std::to_string(splitter_.column_count()) + " columns"
                                     : std::to_string(spec_.column_count) + " columns, as in the first line";
    const bool has_quotes = !Splitter::kQuotes && line_.find('"') != std::string_view::npos;
    refuse(line_.size(), "line: expected " + expected + ", found " + std::to_string(error.column_count) +
                             (has_quotes ? "; --quote double keeps fields in quotes whole" : ""));
  }

  [[nodiscard]] std::size_t place_of(std::string_view text) const {
    const bool is_inside = text.data() >= line_.data() && text.data() <= line_.data() + line_.size();
    return is_inside ? static_cast<std::size_t>(text.data() - line_.data()) : 0;
  }

  void refuse_field(RatingField field, std::string_view text, const char* expected) {
    refuse(place_of(text), std::string(kRatingFieldNames[static_cast<std::size_t>(field)]) + ": expected " +
                               expected + ", found " + found_text(text));
  }

  // What is found cannot be shown: messages are UTF-8, too.
  void refuse_utf8(RatingField field, std::string_view text) {
    refuse(place_of(text),
           std::string(kRatingFieldNames[static_cast<std::size_t>(field)]) + ": expected UTF-8");
  }

  std::string_view text_;
  const RatingTextSpec& spec_;
  Splitter splitter_;
  RatingBlock& block_;
  IdColumn users_;
  IdColumn items_;
  const char* readable_end_ = nullptr;
  bool has_nul_ = false;
  bool checks_utf8_ = false;
  bool watches_quotes_ = false;  // their meaning is not given, and some are there
  std::string_view line_;
  std::uint64_t line_number_ = 0;
};

template <class Delimiter>
void parse_plain(std::string_view text, const RatingTextSpec& spec, Delimiter delimiter, RatingBlock& block) {
  TextParser(text, spec, PlainSplitter(delimiter, spec.columns, spec.column_count), block).parse();
}

}  // namespace

void parse_rating_text(std::string_view text, const RatingTextSpec& spec, RatingBlock& block) {
  clear_block(block);
  if (spec.quoting == Quoting::double_quote)
    TextParser(text, spec, QuotedSplitter(spec.delimiter, spec.columns, spec.column_count), block).parse();
  else if (spec.delimiter == kBlanks)
    parse_plain(text, spec, BlankDelimiter(), block);
  else if (spec.delimiter.size() == 1)
    parse_plain(text, spec, CharDelimiter(spec.delimiter[0], text.data() + text.size()), block);
  else
    parse_plain(text, spec, TextDelimiter(spec.delimiter), block);
}

}  // namespace chunkhit
