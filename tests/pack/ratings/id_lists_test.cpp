#include "pack/ratings/id_lists.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/bytes.h"
#include "base/file.h"
#include "base/hash.h"
#include "chunkhit/error.h"
#include "support/temporary_folder.h"

namespace chunkhit {
namespace {

std::string text_of(const std::string& path) { return std::string(as_text(read_file(path, 1 << 20))); }

void write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

std::string error_of(const std::string& path) {
  try {
    static_cast<void>(read_item_ids(path));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(IdLists, ItemsAreReadAsTheyWereWritten) {
  const TemporaryFolder folder;
  const std::vector<std::string> ids{"7", "a,b", "say \"hi\"", " blank ", "two\nlines", "Zürich"};
  const std::vector<std::uint64_t> ratings{9, 8, 7, 6, 5, 0};
  CompleteList list = write_items(folder.path(), ids, ratings);
  const FileRecord record = list.record;
  list.file.publish();
  const std::string text = text_of(folder.path() + "/items.csv");
  EXPECT_EQ(record.file, "items.csv");
  EXPECT_EQ(record.bytes, text.size());
  EXPECT_EQ(record.xxh3, xxh3(as_bytes(text)));
  EXPECT_TRUE(text.starts_with("column,ratings,item\n0,9,7\n1,8,\"a,b\"\n2,7,\"say \"\"hi\"\"\"\n"));
  EXPECT_EQ(read_item_ids(folder.path()).columns, ids);
  EXPECT_EQ(read_item_ids(folder.path() + "/items.csv").columns, ids);
}

TEST(IdLists, UsersHaveTheirOwnIdsInTheOrderOfRows) {
  const TemporaryFolder folder;
  IdMap ids;
  for (const char* id : {"ann", "bob", "cy"}) ids.add(std::string_view(id));
  const std::vector<std::uint32_t> users{2, 0};
  const std::vector<std::uint32_t> ratings{5, 1};
  write_users(folder.path(), users, ratings, ids).file.publish();
  EXPECT_EQ(text_of(folder.path() + "/users.csv"), "row,ratings,user\n0,5,cy\n1,1,ann\n");
}

TEST(IdLists, ItemsOfASplitAreThoseOfItsTraining) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.path() + "/train");
  write(folder.path() + "/train/items.csv", "column,ratings,item\n0,1,x\n");
  EXPECT_EQ(read_item_ids(folder.path()).columns, std::vector<std::string>{"x"});
}

TEST(IdLists, ItemsThatTrainingLacksHaveNoColumn) {
  const TemporaryFolder folder;
  IdListWriter list(folder.path(), "items.csv", kItemsHeader);
  list.add(3, "x");
  list.add_unseen("a,b");
  list.add_unseen("c");
  list.complete().file.publish();
  const std::string path = folder.path() + "/items.csv";
  EXPECT_EQ(text_of(path), "column,ratings,item\n0,3,x\n,0,\"a,b\"\n,0,c\n");
  const ItemIds ids = read_item_ids(path);
  EXPECT_EQ(ids.columns, std::vector<std::string>{"x"});
  EXPECT_EQ(ids.unseen, (std::vector<std::string>{"a,b", "c"}));
  // A pack's own list has none.
  EXPECT_THROW(static_cast<void>(parse_item_counts(text_of(path), path, 1)), Error);
  write(path, "column,ratings,item\n0,3,x\n,0,x\n");
  EXPECT_NE(error_of(path).find(":3: item x is repeated"), std::string::npos);
  write(path, "column,ratings,item\n0,3,x\n,5,y\n");
  EXPECT_NE(error_of(path).find(":3: ratings: expected 0 for an item without a column, found 5"),
            std::string::npos)
      << error_of(path);
}

TEST(IdLists, RefusesWhatIsNoListOfItems) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/items.csv";
  EXPECT_NE(error_of(folder.path()).find("items.csv is missing"), std::string::npos);
  write(path, "movieId,title\n1,Toy Story\n");
  EXPECT_NE(error_of(path).find("expected an items.csv"), std::string::npos);
  write(path, "column,ratings,item\n0,1,x\n2,1,y\n");
  EXPECT_NE(error_of(path).find(":3: expected column 1"), std::string::npos);
  write(path, "column,ratings,item\n0,many,x\n");
  EXPECT_NE(error_of(path).find(":2: ratings: expected a count, found \"many\""), std::string::npos);
  write(path, "column,ratings,item\n0,1,x\n1,1,x\n");
  EXPECT_NE(error_of(path).find("item x is repeated"), std::string::npos);
}

}  // namespace
}  // namespace chunkhit
