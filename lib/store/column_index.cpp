#include "store/column_index.h"

#include <type_traits>
#include <utility>
#include <variant>

#include "base/bytes.h"

namespace chunkhit {
namespace {

Bytes values_of(const SampleColumn& column) {
  return std::visit(
      [](const auto& list) {
        if constexpr (std::is_same_v<std::decay_t<decltype(list)>, TextList>)
          return bytes_of(list.ends);
        else
          return bytes_of(list);
      },
      column.values);
}

SampleColumn decode_column(IndexCursor& cursor, std::uint64_t sample_count) {
  const std::uint64_t type = cursor.number();
  const std::uint64_t name_bytes = cursor.number();
  const std::uint64_t text_bytes = cursor.number();
  if (type > static_cast<std::uint64_t>(ColumnType::text))
    throw_bad_index("a column of type " + std::to_string(type) + ", expected 0 to 2");
  SampleColumn column = empty_column({"", static_cast<ColumnType>(type)});
  if (column.type() != ColumnType::text && text_bytes != 0) throw_bad_index("a column of numbers with text");
  std::vector<std::uint64_t> ends;
  if (column.type() == ColumnType::int64) column.values = cursor.numbers<std::int64_t>(sample_count);
  if (column.type() == ColumnType::float64) column.values = cursor.numbers<double>(sample_count);
  if (column.type() == ColumnType::text) ends = cursor.numbers<std::uint64_t>(sample_count);
  column.name = as_text(cursor.take(name_bytes, 1));
  if (column.type() == ColumnType::text) column.values = cursor.names(std::move(ends), text_bytes);
  return column;
}

}  // namespace

void append_columns(const std::vector<SampleColumn>& columns, ByteBuffer& bytes) {
  if (columns.empty()) return;
  const auto append = [&](Bytes more) { bytes.insert(bytes.end(), more.begin(), more.end()); };
  append_little(bytes, std::uint64_t{columns.size()});
  for (const SampleColumn& column : columns) {
    const auto* const texts = std::get_if<TextList>(&column.values);
    append_little(bytes, static_cast<std::uint64_t>(column.type()));
    append_little(bytes, std::uint64_t{column.name.size()});
    append_little(bytes, std::uint64_t{texts == nullptr ? 0 : texts->text.size()});
    append(values_of(column));
    append(as_bytes(column.name));
    if (texts != nullptr) append(as_bytes(texts->text));
  }
}

std::vector<SampleColumn> decode_columns(IndexCursor& cursor, std::uint64_t sample_count) {
  const std::uint64_t count = cursor.number();
  if (count == 0 || count > kMaxKeptColumns)
    throw_bad_index(std::to_string(count) + " columns, expected 1 to " + std::to_string(kMaxKeptColumns));
  std::vector<SampleColumn> columns;
  for (std::uint64_t column = 0; column < count; ++column)
    columns.push_back(decode_column(cursor, sample_count));
  return columns;
}

}  // namespace chunkhit
