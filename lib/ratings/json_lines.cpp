#include "ratings/json_lines.h"

#include <array>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/words.h"
#include "ratings/id_map.h"
#include "ratings/json_line.h"
#include "ratings/line_parser.h"
#include "types/enum_names.h"

namespace chunkhit {
namespace {

namespace ondemand = simdjson::ondemand;
using simdjson::error_code;

constexpr std::size_t kFieldCount = 4;  // user, item, value, time

/// A field that is read, and what is left of its name below an object.
struct WantedPath {
  RatingField field = RatingField::other;
  std::string_view path;
};

/// The fields of a line that are read.
class WantedValues {
 public:
  explicit WantedValues(const RatingTable& table) : names_(table.column_names) {
    const RatingColumns& columns = table.text.columns;
    add(RatingField::user, columns.user);
    add(RatingField::item, columns.item);
    add(RatingField::value, columns.value);
    add(RatingField::time, columns.time);
  }
  /// Reads them from a line's object.
  error_code read(ondemand::object object) {
    values_ = {};
    return read(object, std::span(wanted_).first(wanted_count_));
  }
  [[nodiscard]] const JsonValue& operator[](RatingField field) const {
    return values_[static_cast<std::size_t>(field)];
  }

 private:
  void add(RatingField field, std::optional<std::size_t> column) {
    if (column && *column < names_.size()) wanted_[wanted_count_++] = {field, names_[*column]};
  }

  /// Goes as deep as a name has dots.
  error_code read(ondemand::object object, std::span<const WantedPath> wanted) {
    for (auto result : object) {
      ondemand::field field;
      if (const error_code error = std::move(result).get(field)) return error;
      std::string_view key;
      if (const error_code error = read_key(field, key)) return error;
      std::array<WantedPath, kFieldCount> below;
      std::size_t below_count = 0;
      for (const WantedPath& each : wanted) {
        if (!each.path.starts_with(key)) continue;
        if (each.path.size() == key.size()) {
          if (const error_code error = take(each.field, field.value())) return error;
        } else if (each.path[key.size()] == '.') {
          below[below_count++] = {each.field, each.path.substr(key.size() + 1)};
        }
      }
      if (below_count == 0 || field.value().raw_json_token()[0] != '{') continue;
      ondemand::object inner;
      if (const error_code error = field.value().get_object().get(inner)) return error;
      if (const error_code error = read(inner, std::span(below).first(below_count))) return error;
    }
    return simdjson::SUCCESS;
  }

  error_code take(RatingField field, ondemand::value value) {
    JsonValue& found = values_[static_cast<std::size_t>(field)];
    return ++found.count > 1 ? simdjson::SUCCESS : read_value(value, found);
  }

  const std::vector<std::string>& names_;
  std::array<WantedPath, kFieldCount> wanted_;
  std::size_t wanted_count_ = 0;
  std::array<JsonValue, kFieldCount> values_;
};

class JsonParser : LineParser {
 public:
  JsonParser(std::string_view text, const RatingTable& table, RatingBlock& block, BlockMaps& maps)
      : LineParser(text, block, maps),
        table_(table),
        json_(text),
        values_(table),
        text_end_(text.data() + text.size()) {}

  void parse() {
    while (next()) {
      const auto problem =
          json_.read(line_, [this](ondemand::object object) { return values_.read(object); });
      if (problem)
        refuse(line_.data(), *problem);
      else
        parse_rating();
    }
  }

 private:
  void parse_rating() {
    float value = 1;
    std::int64_t time = 0;
    bool is_cut = false;
    if (!check_id(RatingField::user) || !check_id(RatingField::item)) return;
    if (table_.text.columns.value && !parse(RatingField::value, value)) return;
    if (table_.text.columns.time && !parse(RatingField::time, time, is_cut)) return;
    append(users(), values_[RatingField::user]);
    append(items(), values_[RatingField::item]);
    if (table_.text.columns.value) block_.values.push_back(value);
    if (table_.text.columns.time) block_.times.push_back(time);
    block_.cut_times += is_cut ? 1 : 0;
  }

  void append(IdColumn& ids, const JsonValue& value) const {
    if (value.is_unescaped || json_.is_copied())
      ids.append_fleeting(value.text);
    else
      ids.append(value.text, text_end_);
  }

  /// Up to where the bytes behind a value can be read.
  [[nodiscard]] const char* end_of(const JsonValue& value) const {
    return value.is_unescaped || json_.is_copied() ? nullptr : text_end_;
  }

  bool check_id(RatingField field) {
    if (!is_once(field)) return false;
    const JsonValue& value = values_[field];
    if (value.is_plain() && !is_missing_id(value.text) && value.text.find('\0') == std::string_view::npos)
      return true;
    return refuse_value(field, "an id");
  }

  bool parse(RatingField field, float& number) {
    if (!is_once(field)) return false;
    const JsonValue& value = values_[field];
    if (value.token == "true" || value.token == "false") {
      number = value.token == "true" ? 1 : 0;
      return true;
    }
    if (!value.is_plain() || !parse_value(value.text, number, end_of(value)))
      return refuse_value(field, "a number");
    return table_.text.rounds_values || keeps_value(value.text, number) || refuse_value(field, kKeptValue);
  }

  bool parse(RatingField field, std::int64_t& time, bool& is_cut) {
    if (!is_once(field)) return false;
    const JsonValue& value = values_[field];
    return (value.is_plain() &&
            parse_time(value.text, time, &is_cut, table_.text.time_scale, end_of(value))) ||
           refuse_value(field, "a number or YYYY-MM-DD[THH:MM:SS]");
  }

  /// Rejects a line that lacks a field or has it twice: programs differ in which one they take.
  bool is_once(RatingField field) {
    const std::size_t count = values_[field].count;
    if (count == 1) return true;
    const RatingColumns& columns = table_.text.columns;
    const std::array all{columns.user, columns.item, columns.value.value_or(0), columns.time.value_or(0)};
    const std::string& name = table_.column_names[all[static_cast<std::size_t>(field)]];
    refuse(line_.data(), {name_of(field) + ": expected one field \"" + printable_text(name) + '"',
                          count == 0 ? "none" : std::to_string(count)});
    return false;
  }

  bool refuse_value(RatingField field, const char* expected) {
    const JsonValue& value = values_[field];
    const auto offset = static_cast<std::size_t>(value.token.data() - json_.text().data());
    refuse(line_.data() + offset, {name_of(field) + ": expected " + expected, found_text(value.text)});
    return false;
  }

  const RatingTable& table_;
  JsonLine json_;
  WantedValues values_;
  const char* text_end_;
};

}  // namespace

void parse_json_lines(std::string_view text, const RatingTable& table, RatingBlock& block, BlockMaps* kept) {
  BlockMaps own;
  JsonParser(text, table, block, kept != nullptr ? *kept : own).parse();
}

}  // namespace chunkhit
