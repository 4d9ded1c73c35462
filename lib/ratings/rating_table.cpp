#include "ratings/rating_table.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/words.h"
#include "ratings/field_detector.h"
#include "ratings/id_map.h"
#include "ratings/rating_names.h"
#include "ratings/swapped_ids.h"

namespace chunkhit {
namespace {

constexpr std::size_t kDetectedLines = 20;
constexpr std::size_t kLinesOfIds = 1000;
constexpr std::size_t kNamesTold = 20;

/// Reads a column's number, from 1; 0 where it is a name.
std::size_t column_number(const std::string& wish) {
  std::size_t number = 0;
  return parse_all(wish, number) ? number : 0;
}

/// Returns whether a field can be a rating; empty fields and words cannot.
bool is_number(std::string_view text) {
  float value = 0;
  return parse_value(text, value);
}

/// Detects delimiter, quotes, header and columns of one table from its first lines and the options given.
class TableDetector : FieldDetector {
 public:
  TableDetector(const TextHead& head, const RatingTableSpec& spec, std::string_view name,
                const RatingTable* earlier)
      : FieldDetector(spec, name, true),
        spec_(spec),
        earlier_(earlier),
        head_(head.text),
        all_lines_(first_lines(head, kLinesOfIds)),
        lines_(all_lines_.begin(), all_lines_.begin() + static_cast<std::ptrdiff_t>(
                                                            std::min(all_lines_.size(), kDetectedLines))) {}

  RatingTable tell() {
    RatingTextSpec& text = table_.text;
    text.comment = spec_.comment;
    text.delimiter = delimiter();
    text.quoting = quoting(text.delimiter);
    if (lines_.empty()) return without_lines();
    if (lines_[0].starts_with("sep=") && lines_[0].size() == 5)
      refuse("line 1: \"" + printable_text(lines_[0]) +
             "\" is Excel's and no header; `comment` sep= skips it");
    first_ = all_fields(lines_[0], text.delimiter, text.quoting);
    for (std::size_t at = 1; at < lines_.size(); ++at)
      others_.push_back(all_fields(lines_[at], text.delimiter, text.quoting));
    const bool header = is_header();
    if (!header && spec_.header == TableHeader::automatic) check_quotes();
    text.column_count = first_.size();
    if (header) {
      text.header = lines_[0];
      for (const std::string& field : first_) table_.column_names.emplace_back(without_type(field));
    }
    if (!header && earlier_ != nullptr && !earlier_->text.header.empty())
      take_earlier_columns();
    else
      find_columns();
    if (!header && spec_.header == TableHeader::automatic) check_first_line();
    text.time_scale = time_scale();
    if (!header && spec_.user.empty() && spec_.item.empty())
      if (std::string warning = swapped_ids_warning(others_, text.columns.user, text.columns.item);
          !warning.empty())
        table_.notices.push_back(std::move(warning));
    note_float_ids(RatingField::user, text.columns.user);
    note_float_ids(RatingField::item, text.columns.item);
    return table_;
  }

 private:
  RatingTable without_lines() { return earlier_ != nullptr ? *earlier_ : table_; }

  /// A file without a header after one that had one, be it several files before: columns are in its order.
  void take_earlier_columns() {
    table_.text.columns = earlier_->text.columns;
    table_.text.column_count = earlier_->text.column_count;
    table_.text.header = earlier_->text.header;
  }

  /// Quotes enclose fields if the first field that begins with one also ends with one.
  [[nodiscard]] TextQuoting quoting(std::string_view delimiter) const {
    if (spec_.quote != TextQuoting::automatic) return spec_.quote;
    if (delimiter == kBlanks) return TextQuoting::letters;
    if (earlier_ != nullptr && earlier_->text.quoting != TextQuoting::automatic)
      return earlier_->text.quoting;
    for (const std::string_view line : all_lines_)
      if (const std::size_t at = find_quoted_field(line, delimiter); at != std::string_view::npos)
        return ends_in_quote(line, delimiter, at) ? TextQuoting::double_quote : TextQuoting::letters;
    return TextQuoting::automatic;
  }

  [[nodiscard]] bool has_delimiter(std::string_view wanted) const {
    return std::ranges::any_of(all_lines_, [&](std::string_view line) {
      return (wanted == kBlanks ? line.find_first_of(" \t") : line.find(wanted)) != line.npos;
    });
  }

  /// A given delimiter wins, then that of the earlier file where a line has it, then the detected one.
  [[nodiscard]] std::string delimiter() const {
    const std::string& given = spec_.delimiter;
    if (given.find_first_of("\r\n\"") != std::string::npos)
      throw_usage("`delimiter`: must have neither a quote nor a line end");
    if (spec_.quote == TextQuoting::double_quote && given == kBlanks)
      throw_usage("`delimiter` blanks: not with `quote` double");
    if (given == "tab" || given == "\\t") return found("\t");
    if (!given.empty()) return found(given);
    const bool is_as_before =
        earlier_ != nullptr && (all_lines_.empty() || has_delimiter(earlier_->text.delimiter));
    return is_as_before ? earlier_->text.delimiter : detected_delimiter();
  }

  /// Returns a given delimiter; throws bad_data where no line has it.
  [[nodiscard]] std::string found(const std::string& given) const {
    if (!all_lines_.empty() && !has_delimiter(given))
      refuse("line 1: found no \"" + printable_text(given) + "\" (`delimiter`) in \"" +
             printable_text(all_lines_[0].substr(0, 60)) +
             "\" and the lines behind it; without `delimiter` it is detected");
    return given;
  }

  /// Returns the number of columns of the first lines, or 0 if they differ.
  [[nodiscard]] std::size_t column_count(std::string_view delimiter) const {
    std::size_t count = 0;
    for (const std::string_view line : lines_) {
      const std::size_t fields = all_fields(line, delimiter, quoting(delimiter)).size();
      if (count != 0 && fields != count) return 0;
      count = fields;
    }
    return count;
  }

  /// :: and tab are unlikely inside ids and win at once; of ; , | the one with the most columns wins; blanks
  /// come last.
  [[nodiscard]] std::string detected_delimiter() const {
    for (const char* first : {"::", "\t"})
      if (column_count(first) > 1) return first;
    std::string best;
    std::size_t most = 1;
    for (const char* candidate : {";", ",", "|"}) {
      const std::size_t count = column_count(candidate);
      if (count > most) best = candidate;
      most = std::max(most, count);
    }
    if (!best.empty()) return best;
    if (spec_.quote != TextQuoting::double_quote && column_count(kBlanks) > 1) return std::string(kBlanks);
    if (lines_.empty()) return ",";
    // Lines may differ in how many columns they have; most do not, so the first one decides.
    for (const char* candidate : {"\t", ",", ";", "|", "::"})
      if (lines_[0].find(candidate) != std::string_view::npos) return candidate;
    if (spec_.quote != TextQuoting::double_quote) refuse_blanks();
    refuse("line 1: found none of the delimiters , :: ; | tab and blank; give `delimiter`");
  }

  /// Names the first line that has more or fewer columns between blanks than the first has.
  void refuse_blanks() const {
    const std::size_t columns = all_fields(lines_[0], kBlanks, TextQuoting::none).size();
    for (const std::string_view line : lines_) {
      const std::size_t found = all_fields(line, kBlanks, TextQuoting::none).size();
      if (columns < 2 || found == columns) continue;
      const auto number = std::count(head_.data(), line.data(), '\n') + 1;
      refuse("line " + std::to_string(number) + ": expected " + count_text(columns, "column") +
             " between blanks, as in the first line, found " + std::to_string(found) + "; give `delimiter`");
    }
  }

  /// A header has a usual or wished column name and no number, or text where the lines below have numbers.
  [[nodiscard]] bool is_header() const {
    if (spec_.header != TableHeader::automatic) return spec_.header == TableHeader::yes;
    if (earlier_ != nullptr && lines_[0] == earlier_->text.header) return true;
    bool has_name = false;
    bool has_number = false;
    for (const std::string& field : first_) {
      has_number = has_number || is_number(field);
      has_name = has_name || without_type(field).size() < field.size();
      for (std::size_t index = 0; index < wishes_.size(); ++index)
        has_name = has_name || is_usual_name(field, static_cast<RatingField>(index)) ||
                   is_near(field, *wishes_[index]);
    }
    if (has_number) return false;
    return has_name || names_a_number(RatingField::value, 3) || names_a_number(RatingField::time, 4);
  }

  /// Returns whether the first line has a usual column name in quotes, though quotes are letters here.
  [[nodiscard]] bool has_quoted_name() const {
    return table_.text.quoting != TextQuoting::double_quote &&
           std::any_of(first_.begin(), first_.end(), [](const std::string& field) {
             if (field.size() < 2 || field.front() != '"' || field.back() != '"') return false;
             const std::string name = field.substr(1, field.size() - 2);
             return is_usual_name(name, RatingField::user) || is_usual_name(name, RatingField::item) ||
                    is_usual_name(name, RatingField::value) || is_usual_name(name, RatingField::time);
           });
  }

  void check_quotes() const {
    if (has_quoted_name()) refuse("line 1: names stand in quotes; give `quote` double");
  }

  /// Returns whether a column has a number in a later line and none in the first.
  [[nodiscard]] bool names_a_number(RatingField field, std::size_t usual_number) const {
    const std::size_t number = wish(field).empty() ? usual_number : column_number(wish(field));
    if (number == 0 || number > first_.size() || is_number(first_[number - 1])) return false;
    return std::any_of(others_.begin(), others_.end(), [&](const std::vector<std::string>& fields) {
      return number <= fields.size() && is_number(fields[number - 1]);
    });
  }

  /// Returns whether a name differs from the wished one only in case and punctuation.
  [[nodiscard]] static bool is_near(std::string_view name, const std::string& wished) {
    return !wished.empty() && wished != "none" && column_number(wished) == 0 &&
           plain_name(name) == plain_name(wished);
  }

  /// Rejects an ambiguous first line: text above a column of numbers may be a column name or an id.
  void check_first_line() const {
    const RatingColumns& columns = table_.text.columns;
    for (const auto& [field, column] :
         {std::pair(RatingField::user, columns.user), std::pair(RatingField::item, columns.item)})
      if (is_text_among_numbers(column))
        refuse("line 1: " + name_of(field) + " \"" + printable_text(first_[column].substr(0, 40)) +
               "\" is no number, those of the next lines are; if it names a column give `header` yes, "
               "`user` and `item`, if it is an id `header` no");
  }

  [[nodiscard]] bool is_text_among_numbers(std::size_t column) const {
    if (column >= first_.size() || all_lines_.size() < 2 || is_missing_id(first_[column]) ||
        is_number(first_[column]))
      return false;
    return std::all_of(all_lines_.begin() + 1, all_lines_.end(), [&](std::string_view line) {
      const auto fields = all_fields(line, table_.text.delimiter, table_.text.quoting);
      return column < fields.size() && is_number(fields[column]);
    });
  }

  /// User and item are required; value and time are optional.
  void find_columns() {
    RatingColumns& columns = table_.text.columns;
    const auto user = find(RatingField::user);
    const auto item = find(RatingField::item);
    if (!user || !item) refuse_missing(user ? RatingField::item : RatingField::user);
    check_id(RatingField::user, *user);
    check_id(RatingField::item, *item);
    check_value_order(*user, *item);
    columns = {*user, *item, find(RatingField::value), find(RatingField::time)};
    if (columns.time && wish(RatingField::time).empty() && !is_usable_time()) columns.time.reset();
    check_different();
  }

  /// Microseconds where times in seconds have fractions; later inputs are as the first.
  [[nodiscard]] std::int64_t time_scale() const {
    if (earlier_ != nullptr) return earlier_->text.time_scale;
    const RatingTextSpec& text = table_.text;
    if (!text.columns.time) return 1;
    const bool has_fraction = std::ranges::any_of(all_lines_, [&](std::string_view line) {
      const auto fields = all_fields(line, text.delimiter, text.quoting);
      std::int64_t time = 0;
      bool is_cut = false;
      return *text.columns.time < fields.size() && parse_time(fields[*text.columns.time], time, &is_cut) &&
             is_cut && may_be_seconds(time);
    });
    return has_fraction ? kFineTimeScale : 1;
  }

  /// Notes whole numbers that a program wrote as floats: 5.0 is another id than 5.
  void note_float_ids(RatingField field, std::size_t column) {
    const bool are_floats = std::ranges::all_of(others_, [&](const std::vector<std::string>& fields) {
      return column < fields.size() && fields[column].ends_with(".0") && is_number(fields[column]);
    });
    if (!are_floats || others_.empty()) return;
    table_.notices.push_back(name_of(field) + "s such as \"" + printable_text(others_[0][column]) +
                             "\" went through floats and are other ids than whole numbers");
  }

  /// Throws bad_data where a column that stands where ids usually do holds dates or decimals.
  void check_id(RatingField field, std::size_t column) const {
    if (!table_.column_names.empty() || !wish(field).empty()) return;
    std::int64_t time = 0;
    bool are_dates = true, are_numbers = true, has_point = false;
    for (std::size_t line = 0; line <= others_.size(); ++line) {
      const std::vector<std::string>& fields = line == 0 ? first_ : others_[line - 1];
      if (column >= fields.size()) continue;
      are_dates = are_dates && parse_date(fields[column], time);
      are_numbers = are_numbers && is_number(fields[column]);
      has_point = has_point || fields[column].find('.') != std::string::npos;
    }
    if (!are_dates && !(are_numbers && has_point)) return;
    refuse("line 1: column " + std::to_string(column + 1) + " stands where the " + name_of(field) +
           " usually does, but holds " + (are_dates ? "times" : "decimals") + " such as \"" +
           printable_text(first_[column].substr(0, 40)) +
           "\"; give the numbers of the columns: `user`, `item`, `value`, `time`");
  }

  /// Throws bad_data where there are more columns than usual, or ids stand elsewhere: the order says nothing.
  void check_value_order(std::size_t user, std::size_t item) const {
    constexpr std::size_t kValueColumn = 2, kMaxColumns = 4;
    if (!table_.column_names.empty() || !wish(RatingField::value).empty()) return;
    if (first_.size() > kValueColumn && std::max(user, item) >= kValueColumn)
      refuse(
          "line 1: there is no header, and the ids are not in the columns 1 and 2: give `value` and `time`, "
          "by number or the word none");
    const auto ends_empty = [](const auto& fields) { return fields.empty() || fields.back().empty(); };
    const bool is_last_empty = ends_empty(first_) && std::ranges::all_of(others_, ends_empty);  // no column
    if (first_.size() <= kMaxColumns + (is_last_empty ? 1 : 0)) return;
    std::string ids = wish(RatingField::user).empty() ? "`user`, " : "";
    if (wish(RatingField::item).empty()) ids += "`item`, ";
    refuse("line 1: there is no header, and " + count_text(first_.size(), "column") +
           " have no usual order: give " + ids +
           "`value` and `time` by number; `value` and `time` may be none");
  }

  /// Finds a column by number, by name in the header, or by its usual position (user, item, value, time).
  [[nodiscard]] std::optional<std::size_t> find(RatingField field) const {
    const std::string& wished = wish(field);
    if (wished == "none") return std::nullopt;
    if (const std::size_t number = column_number(wished); number > 0) {
      if (number <= first_.size()) return number - 1;
      refuse("line 1: expected column " + std::to_string(number) + " (" + flag(field) + "), found " +
             count_text(first_.size(), "column"));
    }
    if (wished == "0") throw_usage(flag(field) + " 0: columns are numbered from 1");
    if (!table_.column_names.empty()) return find_name(field);
    if (!wished.empty())
      refuse("line 1: expected a header with \"" + wished + "\" (" + flag(field) + "), found none");
    const auto usual = static_cast<std::size_t>(field);
    return usual < first_.size() ? std::optional(usual) : std::nullopt;
  }

  /// An exact match wins over a match without the type suffix; two matches are an error.
  [[nodiscard]] std::optional<std::size_t> find_name(RatingField field) const {
    const std::string& wished = wish(field);
    std::optional<std::size_t> found;
    const auto look = [&](const auto& is_it) {
      for (std::size_t column = 0; column < first_.size(); ++column) {
        if (!is_it(column)) continue;
        if (found)
          refuse("line 1: two columns for " + flag(field) + ", " + std::to_string(*found + 1) + " and " +
                 std::to_string(column + 1) + "; give its number");
        found = column;
      }
      return found.has_value();
    };
    if (wished.empty()) {
      // The names are tried one after the other, the most telling first: "movieId" may stand beside "sid".
      for (const std::string_view usual : usual_names(field))
        if (look([&](std::size_t column) { return plain_name(first_[column]) == usual; })) break;
      return found;
    }
    if (look([&](std::size_t column) { return first_[column] == wished; }) ||
        look([&](std::size_t column) { return table_.column_names[column] == wished; }))
      return found;
    refuse_missing(field);
  }

  [[noreturn]] void refuse_missing(RatingField field) const {
    std::string names;
    for (std::size_t at = 0; at < std::min(first_.size(), kNamesTold); ++at)
      names += (at == 0 ? "\"" : ", \"") + printable_text(first_[at].substr(0, 40)) + '"';
    const std::string wished = wish(field).empty() ? "" : " \"" + printable_text(wish(field)) + '"';
    check_quotes();
    std::string hint = did_you_mean(wish(field), table_.column_names);
    if (hint.empty()) hint = "; give its name or number";
    if (wished.empty() && spec_.header == TableHeader::automatic)
      hint += ", or `header` no where this line is a rating";
    refuse("line 1: no column" + wished + " for " + flag(field) + " among " + names + hint);
  }

  /// Returns whether a time column that was not asked for is readable. Without a header, the fourth column is
  /// taken as the time only if it looks like one.
  [[nodiscard]] bool is_usable_time() {
    const RatingColumns& columns = table_.text.columns;
    std::int64_t time = 0;
    if (!table_.column_names.empty()) {
      const std::string example = first_time();
      if (example.empty() || parse_time(example, time)) return true;
      note_unread_time(printable_text(example.substr(0, 40)));
      return false;
    }
    const bool is_taken =
        columns.time == columns.user || columns.time == columns.item || columns.time == columns.value;
    const std::string& text = first_[*columns.time];
    if (is_taken || !parse_time(text, time)) return false;
    // A small number with a fraction may be any quantity, not only a time.
    return text.find('.') == std::string::npos || std::abs(time) >= kMinFractionTime;
  }

  /// Returns the time of the first line that has one, or an empty text.
  [[nodiscard]] std::string first_time() const {
    const std::size_t column = *table_.text.columns.time;
    for (const std::vector<std::string>& fields : others_)
      if (column < fields.size() && !is_missing_id(fields[column])) return fields[column];
    return "";
  }

  const RatingTableSpec& spec_;
  const RatingTable* earlier_;
  std::string_view head_;
  std::vector<std::string_view> all_lines_;
  std::vector<std::string_view> lines_;           // of them, those that delimiters are detected by
  std::vector<std::string> first_;                // fields of the first line
  std::vector<std::vector<std::string>> others_;  // of the other lines_
};

}  // namespace

RatingTable detect_rating_table(const TextHead& head, const RatingTableSpec& spec, std::string_view name,
                                const RatingTable* earlier) {
  return TableDetector(head, spec, name, earlier).tell();
}

}  // namespace chunkhit
