#include "listing/label_header.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "base/text.h"
#include "base/throw_error.h"
#include "base/words.h"

namespace chunkhit {
namespace {

using Fields = std::vector<std::string_view>;

constexpr std::size_t kColumnsToName = 20;

std::string columns_text(const Fields& header) {
  std::string text;
  for (std::size_t column = 0; column < std::min(header.size(), kColumnsToName); ++column)
    text += (column == 0 ? "\"" : ", \"") + std::string(header[column].substr(0, 100)) + '"';
  if (header.size() > kColumnsToName) text += ", …";
  return text;
}

std::string line_end_advice(const Fields& header) {
  const bool has_single_cr =
      std::any_of(header.begin(), header.end(), [](auto name) { return name.find('\r') != name.npos; });
  return has_single_cr ? "; lines must end in LF or CR LF" : "";
}

constexpr auto kFileNames =
    std::to_array<std::string_view>({"filename", "path", "filepath", "image", "imagepath", "imagename", "img",
                                     "imgpath", "imageid", "name", "id"});
constexpr auto kMaskNames =
    std::to_array<std::string_view>({"mask", "maskpath", "masks", "segmentation", "seg", "annotation"});
constexpr auto kLabelNames = std::to_array<std::string_view>(
    {"class", "label", "classname", "target", "labels", "category", "classid", "tags"});

/// Names the column that is probably meant, by names that are usual.
template <std::size_t kCount>
std::string likely_column(const Fields& header, const std::string& name, const char* flag,
                          const std::array<std::string_view, kCount>& usual) {
  if (std::find(header.begin(), header.end(), name) != header.end()) return "";
  for (const std::string_view wanted : usual)
    for (const std::string_view other : header)
      if (plain_name(other) == wanted && other.find(' ') == other.npos)
        return std::string(" ") + flag + " " + std::string(other);
  return "";
}

std::string column_advice(const Fields& header, const LabelCsvSpec& spec) {
  std::string flags = likely_column(header, spec.file_column, "`file_column`", kFileNames);
  if (const std::vector<FieldPlace> fields = field_columns(spec); fields.size() == 1)
    flags += likely_column(header, fields[0].place, "`mask_column`", kMaskNames);
  if (spec.label_column.size() == 1)
    flags += likely_column(header, spec.label_column[0], "`label_column`", kLabelNames);
  return flags.empty() ? "" : "; give" + flags;
}

/// Whether a table of masks has no labels: it lacks the column that is taken where none is named.
bool lacks_labels(const Fields& header, const LabelColumns& spec) {
  const LabelCsvSpec plain;
  return !spec.mask_column.empty() && spec.label_column == plain.label_column &&
         spec.label_type == plain.label_type && spec.label_separator.empty() &&
         std::ranges::find(header, plain.label_column[0]) == header.end();
}

std::string location_of(const CsvReader& table) {
  return table.name() + ": line " + std::to_string(table.line()) + ": ";
}

/// Finds the columns of a table's header.
class LabelHeader {
 public:
  LabelHeader(const CsvReader& table, const Fields& header, const LabelColumns& spec)
      : table_(table), header_(header), spec_(spec) {}

  [[nodiscard]] std::size_t find(const std::string& name, const char* flag) const {
    const std::optional<std::size_t> found = position(name);
    if (!found) fail_missing(name, flag);
    if (std::count(header_.begin(), header_.end(), name) > 1)
      throw_bad_data(location_of(table_) + "two columns are named \"" + name + "\"");
    return *found;
  }

  /// Adds the columns that a name of `label_column` stands for.
  void add_labels(const std::string& name, std::vector<std::string>& columns) const {
    if (position(name) || (!add_names(name, columns) && !add_range(name, columns))) columns.push_back(name);
  }

 private:
  [[nodiscard]] std::optional<std::size_t> position(std::string_view name) const {
    const auto found = std::ranges::find(header_, name);
    if (found == header_.end()) return std::nullopt;
    return static_cast<std::size_t>(found - header_.begin());
  }

  [[nodiscard]] bool add_names(const std::string& name, std::vector<std::string>& columns) const {
    if (name.find(',') == name.npos) return false;
    for (std::size_t begin = 0, end = 0; end != name.npos; begin = end + 1) {
      end = name.find(',', begin);
      const std::string one = name.substr(begin, end == name.npos ? end : end - begin);
      if (position(one) || !add_range(one, columns)) columns.push_back(one);
    }
    return true;
  }

  /// A name may hold dashes: each may be the one between two columns.
  [[nodiscard]] bool add_range(const std::string& name, std::vector<std::string>& columns) const {
    for (std::size_t dash = name.find('-'); dash != name.npos; dash = name.find('-', dash + 1)) {
      const std::string first = name.substr(0, dash), last = name.substr(dash + 1);
      const std::optional<std::size_t> begin = position(first), end = position(last);
      if (!begin || !end) continue;
      if (*begin > *end)
        throw_usage("`label_column` " + name + ": column \"" + first + "\" stands behind \"" + last +
                    "\"; write " + last + "-" + first);
      columns.insert(columns.end(), header_.begin() + static_cast<std::ptrdiff_t>(*begin),
                     header_.begin() + static_cast<std::ptrdiff_t>(*end) + 1);
      return true;
    }
    return false;
  }

  [[noreturn]] void fail_missing(const std::string& name, const char* flag) const {
    if (header_[0].starts_with('['))
      throw_bad_data(
          table_.name() +
          ": holds a JSON array, expected CSV, or JSON lines: an object on each line; pandas writes "
          "these: pandas.read_json(\"x.json\").to_json(\"x.jsonl\", orient=\"records\", lines=True)");
    const std::vector<std::string> names(header_.begin(), header_.end());
    const std::string near = did_you_mean(name, names);
    std::string advice = line_end_advice(header_);
    if (advice.empty() && near.empty() && spec_.label_column == LabelCsvSpec().label_column &&
        name == spec_.label_column[0])
      advice = "; `label_type` none packs without labels";
    throw_bad_data(location_of(table_) + "expected a header with a column \"" + name + "\" for " + flag +
                   ", found " + columns_text(header_) +
                   (near.empty() ? column_advice(header_, spec_) : near) + advice);
  }

  const CsvReader& table_;
  const Fields& header_;
  const LabelColumns& spec_;
};

}  // namespace

std::vector<FieldPlace> field_columns(const LabelCsvSpec& spec) {
  for (const std::string& column : spec.mask_column)
    if (column.find(',') != std::string::npos)
      throw_usage("`mask_column`: expected names without a comma, each given by itself; found '" + column +
                  "'");
  return parse_fields(spec.mask_column, "`mask_column`", "[NAME=]COLUMN[:view]");
}

void check_columns(const LabelColumns& spec) {
  std::vector<std::string> names = spec.label_column;
  if (names.empty()) throw_usage("`label_column`: at least one is needed");
  if (names.size() > 1 && spec.label_type == LabelType::classes)
    throw_usage("`label_type` classes: is for one `label_column`; several are numbers");
  if (names.size() > 1 && spec.labels_are_names)
    throw_usage("`classes`: is for classes with names; several label columns are numbers");
  if (names.size() > 1 && !spec.label_separator.empty())
    throw_usage("`label_separator`: is for one `label_column`, whose cells hold several names");
  names.push_back(spec.file_column);
  for (const FieldPlace& field : field_columns(spec))
    if (std::ranges::find(spec.keep_columns, field.place) == spec.keep_columns.end())
      names.push_back(field.place);
  names.insert(names.end(), spec.keep_columns.begin(), spec.keep_columns.end());
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) throw_usage("column \"" + *twice + "\" is given twice");
}

UsedFields read_label_header(CsvReader& table, LabelColumns& spec) {
  Fields header;
  if (!table.next_row(header)) throw_bad_data(table.name() + ": is empty, expected a header line");
  const LabelHeader columns(table, header, spec);
  UsedFields used;
  std::vector<std::string> labels;
  const bool has_none = spec.label_type == LabelType::none;
  const bool is_unlabelled = has_none || lacks_labels(header, spec);
  if (is_unlabelled && !has_none)
    used.label_advice = likely_column(header, spec.label_column[0], "`label_column`", kLabelNames);
  if (!is_unlabelled)
    for (const std::string& name : spec.label_column) columns.add_labels(name, labels);
  used.of_pack = header.front() == "row" && (header.back() == "reason" || header.back() == "warning");
  used.column_count = header.size();
  const auto find = [&](const std::string& name, const char* flag) {
    const std::size_t column = columns.find(name, flag);
    used.min_count = std::max(used.min_count, column + 1);
    return column;
  };
  used.file = find(spec.file_column, "`file_column`");
  for (const FieldPlace& field : field_columns(spec))
    used.fields.push_back(find(field.place, "`mask_column`"));
  for (const std::string& name : labels) used.labels.push_back(find(name, "`label_column`"));
  for (const std::string& name : spec.keep_columns) used.kept.push_back(find(name, "`keep_columns`"));
  if (!is_unlabelled) spec.label_column = std::move(labels);
  check_columns(spec);
  return used;
}

}  // namespace chunkhit
