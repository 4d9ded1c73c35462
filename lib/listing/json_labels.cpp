#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/csv_reader.h"
#include "base/throw_error.h"
#include "base/words.h"
#include "listing/json_lines.h"
#include "listing/label_header.h"
#include "listing/tar_groups.h"

namespace chunkhit {
namespace {

constexpr std::size_t kKeysToName = 20;

std::string keys_text(const nlohmann::json& object) {
  std::string text;
  std::size_t named = 0;
  for (const auto& [key, value] : object.items())
    if (named++ < kKeysToName) text += (text.empty() ? "\"" : ", \"") + printable_text(key) + '"';
  return text.empty() ? "{}" : text;
}

/// What makes a list no label; nothing where its texts were joined.
template <class Json>
std::string join_list(const Json& list, std::string_view separator, std::string& joined) {
  if (separator.empty())
    return "is a list of labels; `label_separator` '|' packs them as a 0 or 1 for each name";
  for (const auto& item : list) {
    if (!item.is_string()) return "is a list that holds more than texts";
    const auto& name = item.template get_ref<const std::string&>();
    if (name.find(separator) != std::string::npos)
      return "is a list with \"" + printable_text(name) +
             "\", which holds the `label_separator`; give one that no name holds";
    joined.append(joined.empty() ? "" : separator).append(name);
  }
  return "";
}

}  // namespace

LabelTexts json_labels(std::string_view text, std::span<const std::string> keys,
                       const JsonLabelRules& rules) {
  const nlohmann::json object = nlohmann::json::parse(text, nullptr, false);
  if (!object.is_object()) return {{}, "its .json is no JSON object"};
  LabelTexts found;
  for (const std::string& key : keys) {
    const auto value = object.find(key);
    if (rules.has_missing_numbers && (value == object.end() || value->is_null())) {
      found.labels.emplace_back();
      continue;
    }
    if (value == object.end())
      return {{}, "its .json has no key \"" + printable_text(key) + "\", only " + keys_text(object)};
    if (value->is_array()) {
      std::string problem = join_list(*value, rules.separator, found.labels.emplace_back());
      if (problem.empty()) continue;
      return {{}, "key \"" + printable_text(key) + "\" of its .json " + problem};
    }
    if (value->is_null())
      return {{},
              "key \"" + printable_text(key) +
                  "\" of its .json is null; `missing` 0 or nan packs numbers that are missing"};
    if (!value->is_string() && !value->is_number() && !value->is_boolean())
      return {{}, "key \"" + printable_text(key) + "\" of its .json is neither text nor a number"};
    found.labels.push_back(value->is_string() ? value->get<std::string>() : value->dump());
  }
  return found;
}

ColumnTexts json_columns(std::string_view text, std::span<const std::string> keys) {
  const nlohmann::json object = nlohmann::json::parse(text, nullptr, false);
  ColumnTexts found;
  if (!object.is_object()) found.error = "its .json is no JSON object";
  for (std::size_t column = 0; column < keys.size() && found.error.empty(); ++column) {
    KeptValue& value = found.values.emplace_back();
    const auto field = object.find(keys[column]);
    if (field == object.end()) {
      found.lacks.resize(keys.size());
      found.lacks[column] = true;
    } else if (field->is_structured()) {
      found.error = "key \"" + printable_text(keys[column]) + "\" of its .json is " +
                    (field->is_array() ? "an array" : "an object") + ", expected a number or a text";
    } else if (!field->is_null()) {
      value.is_text = field->is_string();
      value.text = value.is_text ? field->get<std::string>() : field->dump();
    }
  }
  if (!found.lacks.empty())
    for (const auto& [key, value] : object.items())
      if (found.keys.size() < kKeysToName) found.keys.push_back(key);
  return found;
}

bool is_json_lines(Bytes head) {
  std::string_view text = as_text(head);
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  return text.starts_with('{');
}

JsonLines::JsonLines(TextStream& stream, const LabelColumns& columns)
    : stream_(stream),
      label_(columns.label_type == LabelType::none || columns.label_column.size() != 1
                 ? ""
                 : columns.label_column[0]),
      separator_(columns.label_separator),
      used_(columns.keep_columns) {
  for (const FieldPlace& field : field_columns(columns)) used_.push_back(field.place);
  used_.push_back(columns.file_column);
  if (!label_.empty()) used_.push_back(label_);
}

std::size_t JsonLines::read(MutableBytes out) {
  if (keys_.empty()) write_header();
  while (row_begin_ == row_.size()) {
    row_.clear();
    row_begin_ = 0;
    if (probed_at_ < probed_.size()) {
      write_row(probed_[probed_at_++]);
      continue;
    }
    probed_.clear();
    probed_at_ = 0;
    Line line;
    if (!next_line(line)) return 0;
    write_row(line);
  }
  const std::size_t count = std::min(out.size(), row_.size() - row_begin_);
  std::copy_n(as_bytes(row_).begin() + static_cast<std::ptrdiff_t>(row_begin_), count, out.begin());
  row_begin_ += count;
  return count;
}

/// The columns are the keys of the first lines.
void JsonLines::write_header() {
  constexpr std::size_t kProbedLines = 1000;
  constexpr std::size_t kProbedBytes = std::size_t{4} << 20;
  std::size_t bytes = 0;
  for (Line line; probed_.size() < kProbedLines && bytes < kProbedBytes && next_line(line);) {
    bytes += line.text.size();
    const nlohmann::ordered_json object = nlohmann::ordered_json::parse(line.text, nullptr, false);
    if (!object.is_object()) fail(line, is_utf8(line.text) ? "is no JSON object" : "is not UTF-8");
    for (const auto& [key, value] : object.items())
      if (keys_.size() < kMaxKeys && std::ranges::find(keys_, key) == keys_.end()) keys_.push_back(key);
    probed_.push_back(std::move(line));
  }
  if (keys_.empty()) fail(Line{1, ""}, "has no keys, expected those of files and labels");
  for (const std::string& key : keys_) add_cell(key);
  row_ += '\n';
}

void JsonLines::write_row(const Line& line) {
  const nlohmann::ordered_json object = nlohmann::ordered_json::parse(line.text, nullptr, false);
  if (!object.is_object()) fail(line, is_utf8(line.text) ? "is no JSON object" : "is not UTF-8");
  for (const std::string& key : keys_) {
    const auto value = object.find(key);
    std::string text;
    if (value == object.end() || value->is_null()) {
      text = "";
    } else if (value->is_structured()) {
      const bool is_list = value->is_array();
      std::string problem =
          is_list ? "is a list, expected a text or a number" : "is an object, expected a text or a number";
      if (is_list && key == label_) problem = join_list(*value, separator_, text);
      const bool is_used = std::ranges::find(used_, key) != used_.end();
      if (is_used && !problem.empty()) fail(line, "key \"" + printable_text(key) + "\" " + problem);
      if (!is_used) text = is_list ? "a JSON list" : "a JSON object";
    } else {
      text = value->is_string() ? value->get<std::string>() : value->dump();
    }
    add_cell(text);
  }
  row_ += '\n';
}

/// An empty first cell is quoted: a row of nothing else is no blank line.
void JsonLines::add_cell(std::string_view text) {
  if (!row_.empty() && row_.back() != '\n') row_ += ',';
  if (text.empty())
    row_ += "\"\"";
  else
    append_csv_field(row_, text);
}

/// Gives the next line that is not blank.
bool JsonLines::next_line(Line& line) {
  for (;;) {
    const std::size_t end = buffer_.find('\n', searched_);
    searched_ = buffer_.size();
    if (end == std::string::npos && !at_end_) {
      read_more();
      continue;
    }
    const std::size_t stop = std::min(end, buffer_.size());
    if (stop == buffer_begin_ && at_end_ && end == std::string::npos) return false;
    line = {++line_, buffer_.substr(buffer_begin_, stop - buffer_begin_)};
    buffer_begin_ = searched_ = std::min(stop + 1, buffer_.size());
    if (line_ == 1 && line.text.starts_with("\xef\xbb\xbf")) line.text.erase(0, 3);
    if (line.text.find_first_not_of(" \t\r") != std::string::npos) return true;
  }
}

void JsonLines::read_more() {
  buffer_.erase(0, std::exchange(buffer_begin_, 0));
  searched_ = buffer_.size();
  if (searched_ > CsvReader::kMaxRowBytes)
    fail(Line{line_ + 1, ""},
         "has more than " + count_text(CsvReader::kMaxRowBytes, "byte") + ", expected one JSON object");
  ByteBuffer block(TextStream::kHeadBytes);
  const std::size_t count = stream_.read(block);
  at_end_ = count == 0;
  buffer_ += as_text(Bytes(block).first(count));
}

void JsonLines::fail(const Line& line, const std::string& what) const {
  throw_bad_data(stream_.name() + ": line " + std::to_string(line.number) + ": " + what);
}

}  // namespace chunkhit
