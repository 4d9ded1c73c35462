#include "read/list_columns.h"

#include <algorithm>
#include <utility>

#include "base/bytes.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/words.h"
#include "chunkhit/error.h"
#include "manifest/id_list.h"
#include "read/sample_reader.h"

namespace chunkhit {
namespace {

std::string names_text(const std::vector<PackColumn>& columns) {
  std::string text;
  for (const PackColumn& column : columns) text += (text.empty() ? "" : ", ") + column.name;
  return text.empty() ? "none" : text;
}

}  // namespace

void ListColumns::add(std::string path, const FileRecord& record, std::vector<PackColumn> columns,
                      std::uint64_t count) {
  if (lists_.empty()) common_ = columns;
  std::erase_if(common_,
                [&](const PackColumn& known) { return std::ranges::find(columns, known) == columns.end(); });
  lists_.push_back({std::move(path), record, std::move(columns), count});
  count_ += count;
}

/// Reads the column of all lists, whole files of which only it stays.
const SampleColumn& ListColumns::column(const PackColumn& wanted) const {
  const std::scoped_lock lock(mutex_);
  const auto known = read_.find(wanted.name);
  if (known != read_.end()) return known->second;
  SampleColumn read = with_memory("a column of " + things_ + "s needs more memory than can be had", [&] {
    SampleColumn all = empty_column(wanted);
    for (const List& list : lists_) {
      const ByteBuffer bytes = read_file(list.path, list.record.bytes);
      if (xxh3(bytes) != list.record.xxh3)
        throw Error(ErrorCode::bad_data, list.path + ": checksum " + hash_text(xxh3(bytes)) + ", expected " +
                                             hash_text(list.record.xxh3));
      const auto index =
          static_cast<std::size_t>(std::ranges::find(list.columns, wanted) - list.columns.begin());
      const SampleColumn found =
          parse_kept_column(as_text(bytes), list.path, header_, list.columns, index, list.count);
      for (std::size_t at = 0; at < found.size(); ++at) all.append(found, at);
    }
    return all;
  });
  return read_.emplace(wanted.name, std::move(read)).first->second;
}

ColumnValues ListColumns::values(std::string_view name, std::span<const std::uint64_t> indices) const {
  const auto wanted = std::ranges::find(common_, name, &PackColumn::name);
  if (wanted == common_.end())
    throw Error(ErrorCode::usage, things_ + "_column: found \"" + printable_text(name) +
                                      "\", expected one of " + names_text(common_) + " (`" + things_ +
                                      "_columns` of pack-sparse keeps more)");
  const SampleColumn& column = this->column(*wanted);
  ColumnValues values;
  values.type = wanted->type;
  const std::string what = things_ + "_column: " + (things_ == "item" ? "column" : "row");
  for (const std::uint64_t index : indices) require_below(what, index, count_);
  for (const std::uint64_t index : indices)
    if (wanted->type == ColumnType::int64)
      values.integers.push_back(std::get<std::vector<std::int64_t>>(column.values)[index]);
    else if (wanted->type == ColumnType::float64)
      values.numbers.push_back(std::get<std::vector<double>>(column.values)[index]);
    else
      values.texts.push_back(std::get<TextList>(column.values)[index]);
  return values;
}

}  // namespace chunkhit
