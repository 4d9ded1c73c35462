#include "pack/ratings/column_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/file.h"
#include "base/hash.h"
#include "chunkhit/error.h"
#include "manifest/id_list.h"
#include "pack/ratings/id_lists.h"
#include "support/temporary_folder.h"

namespace chunkhit {
namespace {

struct Written {
  explicit Written(const std::string& text) { std::ofstream(path, std::ios::binary) << text; }
  [[nodiscard]] ColumnTable read(const std::string& id_name = "") const {
    return {path, {"`item_columns`", "item", id_name}};
  }
  [[nodiscard]] std::string error() const {
    try {
      static_cast<void>(read());
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_data);
      return error.what();
    }
    return "";
  }
  TemporaryFolder folder;
  std::string path = folder.path() + "/table.csv";
};

std::vector<std::string> texts(const ColumnTable& table, std::string_view id) {
  std::vector<std::string> found;
  table.value_texts(table.find(id), found);
  return found;
}

using Texts = std::vector<std::string>;

TEST(ColumnTable, ValuesOfARowAreFoundByItsId) {
  ColumnTable table = Written("id,year,score,title\n7,1995,3.50,\"a, b\"\nx,1996,,\n").read();
  table.decide_types(false);
  EXPECT_EQ(table.types(),
            (std::vector<PackColumn>{
                {"year", ColumnType::int64}, {"score", ColumnType::float64}, {"title", ColumnType::text}}));
  EXPECT_EQ(texts(table, "7"), (Texts{"1995", "3.5", "a, b"}));
  EXPECT_EQ(texts(table, "x"), (Texts{"1996", "", ""}));
}

TEST(ColumnTable, TheFirstRowWasAHeaderWhereThereIsNone) {
  const Written written("1|24|M\n2|53|F\n");
  try {
    written.read().check_header("1");
    ADD_FAILURE() << "a row is a header";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("`table_header` no"), std::string::npos) << error.what();
  }
  ColumnTable table(written.path, {.flag = "`user_columns`", .things = "user", .header = TableHeader::no});
  table.check_header("1");
  table.decide_types(false);
  EXPECT_EQ(table.types(), (std::vector<PackColumn>{{"2", ColumnType::int64}, {"3", ColumnType::text}}));
  EXPECT_EQ(texts(table, "1"), (Texts{"24", "M"}));
}

TEST(ColumnTable, TablesOfMovieLensWereUnreadable) {
  const Written written("1::\"Great\" Caf\xe9, a (1995)::Comedy\n\n2::B \"b::Drama\n");
  ColumnTable table(
      written.path,
      {.flag = "`item_columns`", .things = "item", .header = TableHeader::no, .is_latin1 = true});
  table.decide_types(false);
  EXPECT_EQ(texts(table, "1"), (Texts{"\"Great\" Caf\u00e9, a (1995)", "Comedy"}));
  EXPECT_EQ(texts(table, "2"), (Texts{"B \"b", "Drama"}));
}

TEST(ColumnTable, AnIdWithoutARowMakesIntegersNumbers) {
  ColumnTable table = Written("id,year,code\n7,1995,9007199254740993\n").read();
  table.decide_types(true);
  EXPECT_EQ(table.types(),
            (std::vector<PackColumn>{{"year", ColumnType::float64}, {"code", ColumnType::text}}));
  EXPECT_EQ(texts(table, "8"), (Texts{"", ""}));
  EXPECT_EQ(texts(table, "7"), (Texts{"1995.0", "9007199254740993"}));
}

TEST(ColumnTable, IdsAreInTheColumnThatTheRatingsName) {
  const Written written("age,userId\n30,1\n40,2\n");
  EXPECT_EQ(written.read("userId").find("2"), 1U);
  EXPECT_EQ(written.read().find("40"), 1U);
  EXPECT_EQ(Written("column,ratings,item,year\n0,9,x,1995\n").read().find("x"), 0U);
}

TEST(ColumnTable, ItsHashIsThatOfPlainCsvWithTheIdsInFront) {
  const auto hash_of = [](const std::string& text) { return Written(text).read("userId").xxh3(); };
  const std::string plain = "userId,age\n1,30\n";
  EXPECT_EQ(hash_of("age\tuserId\n30\t1\n"), xxh3(as_bytes(plain)));
  EXPECT_EQ(hash_of(plain), xxh3(as_bytes(plain)));
  EXPECT_NE(hash_of("age\tuserId\n31\t1\n"), xxh3(as_bytes(plain)));
}

TEST(ColumnTable, TheHeaderDecidesTheDelimiter) {
  for (const char delimiter : {',', '\t', ';', '|'}) {
    std::string text = "isbn/title/year\nX1/\"a, b; c|d\"/1995\n";
    std::ranges::replace(text, '/', delimiter);
    ColumnTable table = Written(text).read();
    table.decide_types(false);
    EXPECT_EQ(texts(table, "X1"), (Texts{"a, b; c|d", "1995"})) << delimiter;
  }
}

TEST(ColumnTable, ErrorsNameTheLine) {
  EXPECT_NE(
      Written("a,b\n1,2\n1,3\n").error().find(":3: item \"1\" has a row already; ids are in column \"a\""),
      std::string::npos);
  EXPECT_NE(Written("a,b\n1\n").error().find(":2: row has 1 field, expected 2"), std::string::npos);
  EXPECT_NE(Written("a,b,b\n").error().find("two columns are named \"b\""), std::string::npos);
  EXPECT_NE(Written(",title,a\n0,1,2\n").error().find("the column of ids has no name"), std::string::npos);
  EXPECT_NE(Written("a,\n").error().find("column 2 has no name"), std::string::npos);
  EXPECT_NE(Written("a\n1\n").error().find("1 to 1,024 further columns, found 0"), std::string::npos);
  EXPECT_NE(Written("a,b\n,2\n").error().find("expected an id"), std::string::npos);
  EXPECT_NE(Written("a,b\n1,\xff\n").error().find("column \"b\": is not UTF-8"), std::string::npos);
  EXPECT_NE(Written("a,b\n1," + std::string(1025, 'x') + "\n").error().find("expected at most 1,024"),
            std::string::npos);
  EXPECT_NE(Written("a,b\n").error().find("holds no rows"), std::string::npos);
  EXPECT_NE(Written("").error().find("is empty"), std::string::npos);
}

TEST(ColumnTable, ATableThatDoesNotFitIntoMemoryIsAUsageError) {
  std::string text = "id,title\n";
  for (int item = 0; item < 40000; ++item)
    text += std::to_string(item) + ",title " + std::to_string(item) + "\n";
  const Written written(text);
  const SparseMemory memory(1 << 20, 1);
  try {
    static_cast<void>(ColumnTable(written.path, {"`item_columns`", "item", "", RatingField::item, &memory}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    EXPECT_NE(std::string(error.what()).find("`item_columns`"), std::string::npos);
  }
}

TEST(ColumnTable, AListReadsBackTheValues) {
  const Written written("id,year,score,title\n7,1995,0.1,\"a\n\"\"b\"\"\"\n8,-3,,x\n");
  ColumnTable table = written.read();
  table.decide_types(false);
  const std::vector<std::string> ids{"8", "7"};
  const std::vector<std::uint64_t> ratings{2, 1};
  CompleteList list = write_items(written.folder.path(), ids, ratings, &table);
  list.file.publish();
  const ByteBuffer bytes = read_file(written.folder.path() + "/items.csv", 1 << 20);
  const std::vector<PackColumn> types = table.types();
  const auto read = [&](std::size_t index) {
    return parse_kept_column(as_text(bytes), "items.csv", kItemsHeader, types, index, 2);
  };
  EXPECT_EQ(std::get<0>(read(0).values), (std::vector<std::int64_t>{-3, 1995}));
  EXPECT_EQ(read(1).value_text(0), "");
  EXPECT_EQ(std::get<1>(read(1).values)[1], 0.1);
  EXPECT_EQ(std::get<2>(read(2).values)[1], "a\n\"b\"");
  EXPECT_EQ(read_item_ids(written.folder.path()).columns, ids);
}

TEST(ColumnTable, AListWithOtherColumnsOrValuesIsBadData) {
  const std::string text = "column,ratings,item,year\n0,1,x,19x5\n";
  const auto error_of = [&](const std::vector<PackColumn>& types) {
    try {
      static_cast<void>(parse_kept_column(text, "items.csv", kItemsHeader, types, 0, 1));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_data);
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(error_of({{"year", ColumnType::text}}), "");
  EXPECT_EQ(error_of({{"year", ColumnType::int64}}),
            "items.csv:2: column \"year\": expected int64, found \"19x5\"");
  EXPECT_EQ(error_of({{"age", ColumnType::text}}), "items.csv: has other columns than its manifest says");
}

}  // namespace
}  // namespace chunkhit
