// What a label CSV may look like is in schemas/label-csv.md.

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/csv_reader.h"
#include "base/text.h"
#include "base/text_stream.h"
#include "base/throw_error.h"
#include "base/words.h"
#include "listing/label_rows.h"
#include "listing/sample_list.h"

namespace chunkhit {
namespace {

using Fields = std::vector<std::string_view>;

constexpr std::size_t kColumnsToName = 20;

/// Which fields of a row are used.
struct UsedFields {
  std::size_t file = 0;
  std::optional<std::size_t> mask;  // where the rows name masks
  std::vector<std::size_t> labels;  // none: samples have masks alone
  std::vector<std::size_t> kept;
  std::size_t min_count = 0;     // a row with fewer fields lacks one that is used
  std::size_t column_count = 0;  // of the header
  std::string label_advice;      // names the column that is probably meant where there are no labels
  bool of_pack = false;          // the header is that of a rejects.csv or warnings.csv
};

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

constexpr std::array<std::string_view, 9> kFileNames{"filename",  "path", "filepath", "image", "imagepath",
                                                     "imagename", "img",  "imgpath",  "name"};
constexpr std::array<std::string_view, 6> kMaskNames{"mask",         "maskpath", "masks",
                                                     "segmentation", "seg",      "annotation"};
constexpr std::array<std::string_view, 7> kLabelNames{"class",  "label",    "classname", "target",
                                                      "labels", "category", "classid"};

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

/// Says how several label columns are given where `name` is several names of the header with commas.
std::string repeat_advice(const Fields& header, const std::string& name) {
  if (name.find(',') == name.npos) return "";
  for (std::size_t begin = 0, end = 0; end != name.npos; begin = end + 1) {
    end = name.find(',', begin);
    if (std::ranges::find(header, std::string_view(name).substr(begin, end - begin)) == header.end())
      return "";
  }
  return "; give `label_column` once for each of them";
}

std::string column_advice(const Fields& header, const std::string& name, const LabelCsvSpec& spec) {
  if (std::string advice = repeat_advice(header, name); !advice.empty()) return advice;
  std::string flags = likely_column(header, spec.file_column, "`file_column`", kFileNames);
  if (!spec.mask_column.empty())
    flags += likely_column(header, spec.mask_column, "`mask_column`", kMaskNames);
  if (spec.label_column.size() == 1)
    flags += likely_column(header, spec.label_column[0], "`label_column`", kLabelNames);
  return flags.empty() ? "" : "; give" + flags;
}

std::size_t find_column(const CsvReader& table, const Fields& header, const std::string& name,
                        const LabelCsvSpec& spec) {
  const auto found = std::find(header.begin(), header.end(), name);
  const std::string location = table.name() + ": line " + std::to_string(table.line());
  if (found == header.end() && header[0].starts_with('{'))
    throw_bad_data(table.name() +
                   ": holds JSON, expected CSV; pandas makes it of JSON lines: "
                   "pandas.read_json(\"x.jsonl\", lines=True).to_csv(\"x.csv\", index=False)");
  if (found == header.end()) {
    const std::vector<std::string> names(header.begin(), header.end());
    throw_bad_data(location + ": expected a header with a column \"" + name + "\", found " +
                   columns_text(header) + did_you_mean(name, names) + column_advice(header, name, spec) +
                   line_end_advice(header));
  }
  if (std::find(found + 1, header.end(), name) != header.end())
    throw_bad_data(location + ": two columns are named \"" + name + "\"");
  return static_cast<std::size_t>(found - header.begin());
}

/// Whether a table of masks has no labels: it lacks the column that is taken where none is named.
bool lacks_labels(const Fields& header, const LabelCsvSpec& spec) {
  const LabelCsvSpec plain;
  return !spec.mask_column.empty() && spec.label_column == plain.label_column &&
         spec.label_type == plain.label_type &&
         std::ranges::find(header, plain.label_column[0]) == header.end();
}

UsedFields find_columns(CsvReader& table, const LabelCsvSpec& spec) {
  Fields header;
  if (!table.next_row(header)) throw_bad_data(table.name() + ": is empty, expected a header line");
  UsedFields used;
  used.of_pack = header.front() == "row" && (header.back() == "reason" || header.back() == "warning");
  used.file = find_column(table, header, spec.file_column, spec);
  used.min_count = used.file + 1;
  used.column_count = header.size();
  const auto find = [&](const std::string& name) {
    const std::size_t column = find_column(table, header, name, spec);
    used.min_count = std::max(used.min_count, column + 1);
    return column;
  };
  if (!spec.mask_column.empty()) used.mask = find(spec.mask_column);
  if (lacks_labels(header, spec)) {
    used.label_advice = likely_column(header, spec.label_column[0], "`label_column`", kLabelNames);
  } else {
    for (const std::string& name : spec.label_column) used.labels.push_back(find(name));
  }
  for (const std::string& name : spec.keep_columns) used.kept.push_back(find(name));
  return used;
}

std::string fields_text(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " field" : " fields");
}

/// Takes the rows of a table one after the other.
class TableRows {
 public:
  TableRows(SampleList& list, UsedFields used, const LabelColumns& spec)
      : list_(list),
        rows_(list, spec),
        used_(std::move(used)),
        labels_(used_.labels.size()),
        kept_(used_.kept.size()) {}

  void take(const Fields& fields) {
    add_to_hash(fields);
    const std::string error = take_sample(fields);
    if (!error.empty()) reject(fields, error);
  }

  void finish() {
    if (!used_.labels.empty()) return rows_.finish();
    list_.class_ids.assign(list_.size(), -1);
    rows_.finish_unlabelled(list_.rows);
  }

 private:
  // A field that a short row lacks is hashed as what no field can be: a NUL; a row with too many has two
  // more.
  void add_to_hash(const Fields& fields) {
    const auto add = [&](std::size_t at) {
      rows_.hash().add(at < fields.size() ? fields[at] : std::string_view("\0", 1));
    };
    add(used_.file);
    if (used_.mask) add(*used_.mask);
    for (const std::size_t label : used_.labels) add(label);
    for (const std::size_t kept : used_.kept) add(kept);
    if (has_surplus(fields)) rows_.hash().add(std::string_view("\0\0", 2));
  }

  // Whether a row has fields behind the header's columns; some programs end lines with a delimiter.
  [[nodiscard]] bool has_surplus(const Fields& fields) const {
    if (fields.size() <= used_.column_count) return false;
    return std::any_of(fields.begin() + static_cast<std::ptrdiff_t>(used_.column_count), fields.end(),
                       [](std::string_view field) { return !field.empty(); });
  }

  // Adds the row to the samples, or gives what is wrong with it.
  std::string take_sample(const Fields& fields) {
    if (fields.size() < used_.min_count)
      return "row has " + fields_text(fields.size()) + ", expected at least " +
             std::to_string(used_.min_count);
    if (has_surplus(fields))
      return "row has " + fields_text(fields.size()) + ", expected " + std::to_string(used_.column_count) +
             " as in the header; quote fields that hold the delimiter";
    for (std::size_t column = 0; column < labels_.size(); ++column)
      labels_[column] = fields[used_.labels[column]];
    for (std::size_t column = 0; column < kept_.size(); ++column)
      kept_[column].text.assign(fields[used_.kept[column]]);
    if (!used_.mask) return rows_.take(fields[used_.file], labels_, kept_);
    return take_masked(fields[used_.file], fields[*used_.mask]);
  }

  std::string take_masked(std::string_view file, std::string_view mask) {
    if (mask.empty()) return "mask is missing";
    if (!is_utf8(mask)) return "mask is not UTF-8";
    std::string error =
        labels_.empty() ? rows_.take_unlabelled(file, kept_) : rows_.take(file, labels_, kept_);
    if (error.empty()) list_.mask_files.add(mask);
    return error;
  }

  void reject(const Fields& fields, const std::string& error) {
    const auto field = [&](std::size_t at) { return at < fields.size() ? fields[at] : std::string_view(); };
    std::vector<std::string> labels;
    for (const std::size_t label : used_.labels) labels.emplace_back(field(label));
    for (const std::size_t kept : used_.kept) labels.emplace_back(field(kept));
    rows_.reject(field(used_.file), std::move(labels), error);
  }

  SampleList& list_;
  LabelRows rows_;
  UsedFields used_;
  Fields labels_;                // of the row in hand
  std::vector<KeptValue> kept_;  // the same
};

}  // namespace

void check_columns(const LabelCsvSpec& spec) {
  std::vector<std::string> names = spec.label_column;
  if (names.empty()) throw_usage("`label_column`: at least one is needed");
  names.push_back(spec.file_column);
  if (!spec.mask_column.empty()) names.push_back(spec.mask_column);
  names.insert(names.end(), spec.keep_columns.begin(), spec.keep_columns.end());
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) throw_usage("column \"" + *twice + "\" is given twice");
}

SampleList list_label_rows(CsvReader& table, const LabelColumns& spec) {
  check_columns(spec);
  SampleList list;
  list.file_column = spec.file_column;
  list.label_columns = spec.label_column;
  const UsedFields used = find_columns(table, spec);
  TableRows rows(list, used, spec);
  Fields fields;
  while (table.next_row(fields)) rows.take(fields);
  rows.finish();
  if (list.row_count == 0) throw_bad_data(table.name() + ": holds no rows below its header");
  if (list.size() == 0)
    throw_bad_data(table.name() + ": none of its " + std::to_string(list.row_count) +
                   " rows can be used; the first: " + list.rejects[0].reason);
  notice_repeated_files(list);
  if (!used.label_advice.empty())
    list.notices.push_back(table.name() + " has no column \"" + spec.label_column[0] +
                           "\": samples have masks and no labels; give" + used.label_advice +
                           " where these are wanted");
  if (used.of_pack && !list.classes.empty() && !spec.labels_are_names)
    list.notices.push_back(table.name() +
                           " lists rows of a pack: class ids follow from its own classes and may differ from "
                           "that pack's; `classes` PACK keeps them");
  return list;
}

SampleList list_label_csv(const std::string& path, const LabelColumns& spec, const std::atomic<bool>* stop) {
  TextStream stream(path, stop);
  CsvReader table(
      stream.name(), [&](MutableBytes out) { return stream.read(out); }, 0);
  return list_label_rows(table, spec);
}

}  // namespace chunkhit
