// Any bytes as items.csv end in a list of ids, of counts and of values of kept columns, equally many, or in
// an Error; as a table of columns in values that read back from the list that they are written to.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fuzz/rating_blocks.h"
#include "manifest/id_list.h"
#include "pack/ratings/column_table.h"
#include "pack/ratings/id_lists.h"

namespace {

using namespace chunkhit;

template <class Read>
auto list_of(Read read) -> std::optional<decltype(read())> {
  try {
    return read();
  } catch (const Error& error) {
    require(error.code() == ErrorCode::bad_data);
    return std::nullopt;
  }
}

void read_lists(const MemoryFile& file, Bytes bytes) {
  const auto ids = list_of([&] { return read_item_ids(file.path()).columns; });
  const std::uint64_t count = ids ? ids->size() : 3;
  const auto counts = list_of([&] { return parse_item_counts(as_text(bytes), "items.csv", count); });
  require(!counts || counts->size() == count);
  for (const ColumnType type : {ColumnType::int64, ColumnType::float64, ColumnType::text}) {
    const std::vector<PackColumn> kept{{"a", type}};
    const auto values =
        list_of([&] { return parse_kept_column(as_text(bytes), "items.csv", kItemsHeader, kept, 0, count); });
    require(!values || values->size() == count);
  }
}

/// The table of the ids in the order of its rows, and of one without a row.
void read_table(const MemoryFile& file) {
  auto read = list_of([&] {
    auto table = std::make_unique<ColumnTable>(file.path(), ColumnTableUse{"`item_columns`", "item", "id"});
    table->decide_types(true);
    return table;
  });
  if (!read) return;
  const ColumnTable& table = **read;
  std::vector<std::string> texts;
  for (std::size_t row = 0; row <= table.row_count(); ++row) {
    table.value_texts(row, texts);
    std::vector<PackColumn> types = table.types();
    require(texts.size() == types.size());
    for (std::size_t column = 0; column < types.size(); ++column) {
      SampleColumn values = empty_column(types[column]);
      require(values.append_text(texts[column]) && values.value_text(0) == texts[column]);
    }
    if (row < table.row_count()) require(table.find(table.id(row)) == row);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Bytes bytes(data, size);
  const MemoryFile file(bytes);
  read_lists(file, bytes);
  read_table(file);
  return 0;
}
