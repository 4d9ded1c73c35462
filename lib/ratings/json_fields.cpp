#include "ratings/json_fields.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/text.h"
#include "base/words.h"
#include "ratings/field_detector.h"
#include "ratings/json_line.h"
#include "ratings/json_lines.h"
#include "ratings/rating_names.h"

namespace chunkhit {
namespace {

namespace ondemand = simdjson::ondemand;
using simdjson::error_code;

constexpr std::size_t kLinesOfNames = 1000;
constexpr std::size_t kMaxNames = 1000;
constexpr std::size_t kMaxDepth = 8;
constexpr std::size_t kNamesTold = 20;
constexpr std::size_t kLettersOfArray = 16;  // of the colon, two brackets, and blanks among them

bool is_plain_letter(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || letter == '_';
}

/// Detects the fields of one input.
class JsonDetector : FieldDetector {
 public:
  JsonDetector(const TextHead& head, const RatingTableSpec& spec, std::string_view name)
      : FieldDetector(spec, name, false), lines_(first_lines(head, kLinesOfNames)), is_whole_(head.is_whole) {
    // A line that is cut off: the names that are given must do.
    is_cut_ = lines_.size() == 1 && !is_whole_ && head.text.find('\n') == std::string_view::npos;
  }

  RatingTable detect(const RatingTable* earlier) {
    if (lines_.empty() && !is_whole_) refuse("line 1: the first 64 KiB are blank, expected JSON");
    if (lines_.empty()) return earlier != nullptr ? *earlier : table_;
    check_lines();
    if (is_cut_)
      take_wishes();
    else
      collect_names();
    find_columns();
    table_.text.column_count = table_.column_names.size();
    if (earlier != nullptr && has_fields_of(*earlier)) return *earlier;
    table_.text.time_scale = earlier != nullptr ? earlier->text.time_scale : time_scale();
    return table_;
  }

 private:
  /// Names the way for what holds ratings, but no object on each line.
  void check_lines() const {
    std::string_view line = lines_[0];
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    if (line.starts_with('['))
      refuse(
          "line 1: found a JSON array, expected an object on each line; of an array of objects: "
          "jq -c '.[]' FILE | pack-sparse - ...");
    if (line.starts_with('{') && line.find_first_not_of(" \t", 1) == std::string_view::npos)
      refuse(
          "line 1: found an object of several lines, expected a whole one on each line: "
          "jq -c . FILE | pack-sparse - ...");
    if (const std::string name = only_array(line); !name.empty())
      refuse("line 1: found one object with the array \"" + name +
             "\", expected an object on each line: jq -c '." + name + "[]' FILE | pack-sparse - ...");
    if (line.starts_with("{'") || line.starts_with("{u'"))
      refuse(
          "line 1: found a dict of Python, expected JSON: python3 -c 'import ast, json, sys; "
          "[print(json.dumps(ast.literal_eval(line))) for line in sys.stdin]' < FILE | pack-sparse - ...");
  }

  /// The name of an array of objects that the only line begins with, where none of its names is a usual one.
  [[nodiscard]] std::string only_array(std::string_view line) const {
    std::size_t quotes[2] = {line.find('"'), line.find('"', line.find('"') + 1)};
    if (lines_.size() != 1 || quotes[1] == std::string_view::npos) return "";
    const std::string_view name = line.substr(quotes[0] + 1, quotes[1] - quotes[0] - 1);
    std::string begin;
    for (const char letter : line.substr(0, quotes[1] + kLettersOfArray))
      if (letter != ' ' && letter != '\t') begin += letter;
    if (!begin.starts_with("{\"" + std::string(name) + "\":[{")) return "";
    const auto ends_line = line.find_last_not_of(" \t\r}");
    const bool is_alone = is_cut_ || (ends_line != std::string_view::npos && line[ends_line] == ']');
    return is_alone && std::ranges::all_of(name, is_plain_letter) ? std::string(name) : "";
  }

  void take_wishes() {
    for (const std::string* wished : wishes_) {
      if (wished->empty())
        refuse(
            "line 1: found more than 64 KiB, too long to find its fields; give `user`, `item`, `value` and "
            "`time`, value and time perhaps none");
      if (*wished != "none") note(*wished, "");
    }
  }

  void collect_names() {
    JsonLine json(all_lines());
    std::optional<LineProblem> first;
    for (const std::string_view line : lines_) {
      auto problem = json.read(line, [this](ondemand::object object) { return collect(object, "", 1); });
      if (problem && !first) first = std::move(problem);
    }
    if (table_.column_names.empty()) refuse("first " + (first ? first->reason() : "line: found no field"));
  }

  /// Notes the fields of an object, those of nested ones with their names before.
  error_code collect(ondemand::object object, const std::string& prefix, std::size_t depth) {
    for (auto result : object) {
      ondemand::field field;
      if (const error_code error = std::move(result).get(field)) return error;
      std::string_view key;
      if (const error_code error = read_key(field, key)) return error;
      const std::string path = prefix + std::string(key);
      JsonValue value;
      if (field.value().raw_json_token()[0] == '{' && depth < kMaxDepth) {
        ondemand::object inner;
        if (const error_code error = field.value().get_object().get(inner)) return error;
        if (const error_code error = collect(inner, path + '.', depth + 1)) return error;
        continue;
      }
      if (const error_code error = read_value(field.value(), value)) return error;
      note(path, value.token == "null" ? "" : value.text);
    }
    return simdjson::SUCCESS;
  }

  /// Notes a field, and the first text that it has.
  void note(const std::string& name, std::string_view text) {
    std::vector<std::string>& names = table_.column_names;
    const auto column = static_cast<std::size_t>(std::ranges::find(names, name) - names.begin());
    if (column == kMaxNames) return;
    if (column == names.size()) {
      names.push_back(name);
      texts_.emplace_back();
    }
    if (texts_[column].empty()) texts_[column] = text;
  }

  void find_columns() {
    RatingColumns& columns = table_.text.columns;
    const auto user = find(RatingField::user);
    const auto item = find(RatingField::item);
    if (!user || !item) refuse_missing(user ? RatingField::item : RatingField::user);
    columns = {*user, *item, find(RatingField::value), find(RatingField::time)};
    if (columns.time && wish(RatingField::time).empty() && !is_usable_time()) columns.time.reset();
    if (!columns.value && wish(RatingField::value).empty()) note_nested_values();
    check_different();
  }

  /// Nested fields are not taken by themselves: they may be of another thing than of the rating.
  void note_nested_values() {
    for (const std::string& name : table_.column_names) {
      const std::size_t dot = name.rfind('.');
      if (dot == std::string::npos || !is_usual_name(name.substr(dot + 1), RatingField::value)) continue;
      table_.notices.push_back("no field is used as value, every rating is 1; the nested field \"" +
                               printable_text(name) + "\" is read by `value` " + printable_text(name));
      return;
    }
  }

  [[nodiscard]] std::optional<std::size_t> find(RatingField field) const {
    const std::vector<std::string>& names = table_.column_names;
    const std::string& wished = wish(field);
    if (wished == "none") return std::nullopt;
    if (!wished.empty()) {
      const auto found = std::ranges::find(names, wished);
      if (found == names.end()) refuse_missing(field);
      return static_cast<std::size_t>(found - names.begin());
    }
    for (const std::string_view usual : usual_names(field)) {
      const auto is_usual = [usual](const std::string& name) { return plain_name(name) == usual; };
      const auto found = std::ranges::find_if(names, is_usual);
      if (found == names.end()) continue;
      if (const auto other = std::find_if(found + 1, names.end(), is_usual); other != names.end())
        refuse("line 1: two fields for " + flag(field) + ", \"" + printable_text(*found) + "\" and \"" +
               printable_text(*other) + "\"; give its name");
      return static_cast<std::size_t>(found - names.begin());
    }
    return std::nullopt;
  }

  [[noreturn]] void refuse_missing(RatingField field) const {
    const std::vector<std::string>& names = table_.column_names;
    const std::string wished = wish(field).empty() ? "" : " \"" + printable_text(wish(field)) + '"';
    std::string hint = did_you_mean(wish(field), names);
    const auto nested = std::ranges::find_if(names, [&](const std::string& name) {
      return name.find('.') != std::string::npos &&
             name.starts_with(wish(field) + (wish(field).empty() ? "" : "."));
    });
    if (!wish(field).empty() && nested != names.end())
      hint = "; it is an object: give one of its fields, such as \"" + printable_text(*nested) + '"';
    if (hint.empty())
      hint = "; give its name" +
             (nested == names.end() ? "" : ", of a nested one with dots: " + printable_text(*nested));
    const auto told = std::span(names).first(std::min(names.size(), kNamesTold));
    refuse("line 1: no field" + wished + " for " + flag(field) + " among " +
           joined(told, ", ", [](const std::string& name) { return '"' + printable_text(name) + '"'; }) +
           hint);
  }

  /// Whether a time that was not asked for is readable.
  [[nodiscard]] bool is_usable_time() {
    const std::size_t column = *table_.text.columns.time;
    const std::string example = printable_text(std::string_view(texts_[column]).substr(0, 40));
    std::int64_t time = 0;
    if (example.empty() || parse_time(texts_[column], time)) return true;
    note_unread_time(example);
    return false;
  }

  [[nodiscard]] bool has_fields_of(const RatingTable& earlier) const {
    const auto name = [](const RatingTable& table, std::optional<std::size_t> column) {
      return column ? table.column_names[*column] : std::string();
    };
    const RatingColumns& before = earlier.text.columns;
    const RatingColumns& now = table_.text.columns;
    return earlier.text.column_count > 0 && name(earlier, before.user) == name(table_, now.user) &&
           name(earlier, before.item) == name(table_, now.item) &&
           name(earlier, before.value) == name(table_, now.value) &&
           name(earlier, before.time) == name(table_, now.time);
  }

  /// Microseconds where times in seconds have fractions.
  [[nodiscard]] std::int64_t time_scale() const {
    RatingBlock block;
    parse_json_lines(all_lines(), table_, block);
    return block.cut_times > 0 && std::ranges::any_of(block.times, may_be_seconds) ? kFineTimeScale : 1;
  }
  /// From the first one to the end of the last one.
  [[nodiscard]] std::string_view all_lines() const {
    const char* const end = lines_.back().data() + lines_.back().size();
    return {lines_[0].data(), static_cast<std::size_t>(end - lines_[0].data())};
  }

  std::vector<std::string_view> lines_;
  bool is_whole_;  // the head is all of the file
  bool is_cut_ = false;
  std::vector<std::string> texts_;  // the first one of each field
};

}  // namespace

RatingTable detect_json_fields(const TextHead& head, const RatingTableSpec& spec, std::string_view name,
                               const RatingTable* earlier) {
  return JsonDetector(head, spec, name).detect(earlier);
}

}  // namespace chunkhit
