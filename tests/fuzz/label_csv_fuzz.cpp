// Any bytes as a label CSV: they end in a list or in an Error, and a list that is written out reads the same.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>

#include "base/csv_reader.h"
#include "base/text.h"
#include "chunkhit/error.h"
#include "listing/sample_list.h"

namespace {

using namespace chunkhit;

void require(bool holds) {
  if (!holds) std::abort();
}

std::optional<SampleList> list_pieces(Bytes csv, std::size_t piece_bytes, const LabelColumns& spec) {
  const auto source = [&](MutableBytes out) {
    const std::size_t count = std::min({csv.size(), piece_bytes, out.size()});
    std::copy_n(csv.begin(), count, out.begin());
    csv = csv.subspan(count);
    return count;
  };
  try {
    CsvReader table("fuzz.csv", source, 0);
    return list_label_rows(table, spec);
  } catch (const Error& error) {
    require(error.code() == ErrorCode::bad_data);
    return std::nullopt;
  }
}

std::string csv_field(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + '"';
}

std::string written(const SampleList& list) {
  std::string text = "file";
  for (const std::string& column : list.label_columns) text += ',' + csv_field(column);
  text += '\n';
  for (std::size_t index = 0; index < list.size(); ++index) {
    text += csv_field(list.file(index));
    for (const std::string& label : list.label_text(index)) text += ',' + csv_field(label);
    text += '\n';
  }
  return text;
}

void check_list(const SampleList& list, const LabelColumns& spec) {
  require(list.row_count == list.size() + list.rejects.size());
  const bool ids = list.label_kind == LabelKind::class_id;
  require(list.class_ids.size() == (ids ? list.size() : 0));
  require(list.values.size() == (ids ? 0 : list.size() * spec.label_column.size()));
  for (std::size_t index = 0; index < list.size(); ++index)
    require(is_utf8(list.file(index)) && !list.file(index).empty() && list.row(index) < list.row_count);
  require(std::is_sorted(list.classes.begin(), list.classes.end()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  LabelColumns one;
  LabelColumns two;
  two.label_column = {"label", "other"};
  for (const LabelColumns& spec : {one, two}) {
    const auto list = list_pieces({data, size}, size, spec);
    const auto in_pieces = list_pieces({data, size}, 3, spec);
    require(list.has_value() == in_pieces.has_value());
    if (!list) continue;
    require(list->xxh3 == in_pieces->xxh3 && list->files == in_pieces->files);
    check_list(*list, spec);
    const auto again = list_pieces(as_bytes(written(*list)), std::size_t{1} << 20, spec);
    require(again && again->files == list->files && again->rejects.empty() &&
            again->classes == list->classes && again->class_ids == list->class_ids &&
            again->values == list->values);
  }
  return 0;
}
