#include <gtest/gtest.h>

#include "chunkhit/error.h"
#include "listing/sample_list.h"

namespace chunkhit {
namespace {

using Texts = std::vector<std::string>;

std::string error_of(std::string_view text) {
  try {
    static_cast<void>(parse_class_names(text, "names.txt"));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_data);
    return error.what();
  }
  return "none";
}

/// Three files of the classes cat, bee and cat.
SampleList list_of_cat_bee_cat() {
  SampleList list;
  list.label_columns = {"label"};
  list.files = {"abc", {1, 2, 3}};
  list.row_count = 3;
  list.classes = {"bee", "cat"};
  list.class_ids = {1, 0, 1};
  return list;
}

TEST(ClassList, HasANameALine) {
  EXPECT_EQ(parse_class_names("\xef\xbb\xbf"
                              "cat\r\n\nant \nbee",
                              "names.txt"),
            (Texts{"cat", "ant ", "bee"}));
  EXPECT_EQ(error_of("cat\nbee\n\ncat\n"), "names.txt: line 4: class \"cat\" is listed in line 1, too");
  EXPECT_EQ(error_of("cat\n\xff\n"), "names.txt: line 2: expected the name of a class, found no UTF-8 text");
  EXPECT_EQ(error_of("\n\n"), "names.txt: lists no classes, expected one name a line");
}

TEST(ClassList, NumbersAListsClasses) {
  SampleList list = list_of_cat_bee_cat();
  renumber_classes(list, {"ant", "bee", "cat", "dog"});
  EXPECT_EQ(list.classes, (Texts{"ant", "bee", "cat", "dog"}));
  EXPECT_EQ(list.class_ids, (std::vector<std::int64_t>{2, 1, 2}));
  EXPECT_EQ(list.label_text(0), Texts{"cat"});
}

TEST(ClassList, NamesAnUnknownClassAndAFileOfIt) {
  SampleList list = list_of_cat_bee_cat();
  try {
    renumber_classes(list, {"ant", "cat"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_data);
    EXPECT_STREQ(error.what(), "`classes`: class \"bee\" of b is not among the 2 that are listed");
  }
}

TEST(ClassList, SaysThatFoldersOfNumbersHaveIdsInTheOrderOfText) {
  SampleList list;
  list.classes = {"1", "10", "9"};
  notice_text_order(list);
  EXPECT_EQ(list.notices,
            Texts{"class folders are numbers, but ids follow the order of text: 10 is class 1 and 9 "
                  "is class 2; `classes` FILE gives another order"});
  list.classes = {"08", "09", "10"};
  notice_text_order(list);
  list.classes = {"1", "10", "9", "x"};
  notice_text_order(list);
  EXPECT_EQ(list.notices.size(), 1u);
}

TEST(ClassList, IsForNames) {
  SampleList list = list_of_cat_bee_cat();
  list.classes.clear();
  EXPECT_THROW(renumber_classes(list, {"cat"}), Error);
}

}  // namespace
}  // namespace chunkhit
