// What a label CSV may look like is in schemas/label-csv.md.

#include <algorithm>
#include <utility>

#include "base/csv_reader.h"
#include "base/text.h"
#include "base/text_stream.h"
#include "base/throw_error.h"
#include "listing/json_lines.h"
#include "listing/label_header.h"
#include "listing/label_rows.h"
#include "listing/sample_list.h"

namespace chunkhit {
namespace {

using Fields = std::vector<std::string_view>;

std::string fields_text(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " field" : " fields");
}

/// Whether a cell holds starts and lengths of runs, as Kaggle's tables do: "1 3 10 5".
bool is_run_lengths(std::string_view text) {
  return text.find(' ') != text.npos && text.find_first_not_of("0123456789 ") == text.npos;
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

  /// How rejects for blanks can be packed, to end an error.
  [[nodiscard]] std::string advice() const {
    const std::string text = rows_.missing_advice();
    return text.empty() ? "" : "; " + text;
  }

 private:
  // A field that a short row lacks is hashed as what no field can be: a NUL; a row with too many has two
  // more.
  void add_to_hash(const Fields& fields) {
    const auto add = [&](std::size_t at) {
      rows_.hash().add(at < fields.size() ? fields[at] : std::string_view("\0", 1));
    };
    add(used_.file);
    for (const std::size_t field : used_.fields) add(field);
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
    for (std::size_t at = 0; at < used_.fields.size(); ++at) {
      const std::string_view file = fields[used_.fields[at]];
      if (file.empty()) return list_.fields[at].field.name + " is missing";
      if (is_run_lengths(file))
        return list_.fields[at].field.name +
               " is run-length encoded, expected the path of an image: write masks as PNG files first";
      if (!is_utf8(file)) return list_.fields[at].field.name + " is not UTF-8";
    }
    const std::string_view file = fields[used_.file];
    std::string error =
        labels_.empty() ? rows_.take_unlabelled(file, kept_) : rows_.take(file, labels_, kept_);
    if (!error.empty()) return error;
    for (std::size_t at = 0; at < used_.fields.size(); ++at)
      list_.fields[at].files.add(fields[used_.fields[at]]);
    return "";
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

SampleList list_label_rows(CsvReader& table, const LabelColumns& columns) {
  LabelColumns spec = columns;
  const UsedFields used = read_label_header(table, spec);
  SampleList list;
  list.labels_from = LabelSource::csv;
  list.file_column = spec.file_column;
  list.label_columns = spec.label_column;
  for (FieldPlace& column : field_columns(spec)) list.fields.push_back({std::move(column.field), {}, {}, {}});
  TableRows rows(list, used, spec);
  Fields fields;
  while (table.next_row(fields)) rows.take(fields);
  rows.finish();
  if (list.row_count == 0) throw_bad_data(table.name() + ": holds no rows below its header");
  if (list.size() == 0)
    throw_bad_data(table.name() + ": none of its " + std::to_string(list.row_count) +
                   " rows can be used; the first: " + list.rejects[0].reason + rows.advice());
  notice_repeated_files(list);
  if (!used.label_advice.empty())
    list.notices.push_back(table.name() + " has no column \"" + spec.label_column[0] +
                           "\": samples have no labels; give" + used.label_advice +
                           " where these are wanted");
  if (used.of_pack && !list.classes.empty() && !spec.labels_are_names)
    list.notices.push_back(table.name() +
                           " lists rows of a pack: class ids follow from its own classes and may differ from "
                           "that pack's; `classes` PACK keeps them");
  return list;
}

SampleList list_label_csv(const std::string& path, const LabelColumns& spec, const std::atomic<bool>* stop) {
  TextStream stream(path, stop);
  const bool is_json = is_json_lines(stream.head());
  JsonLines lines(stream, spec);
  CsvReader table(
      stream.name(), [&](MutableBytes out) { return is_json ? lines.read(out) : stream.read(out); },
      is_json ? ',' : '\0');
  return list_label_rows(table, spec);
}

}  // namespace chunkhit
