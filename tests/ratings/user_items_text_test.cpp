#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "ratings/rating_text.h"
#include "support/rating_rows.h"

namespace chunkhit {
namespace {

using Rows = std::vector<std::string>;

/// Parses a copy that ends where its memory ends, so that a sanitizer sees what is read behind it.
template <class Parse>
RatingBlock parsed(std::string_view text, Parse parse) {
  const auto copy = std::make_unique<char[]>(text.size());
  std::copy(text.begin(), text.end(), copy.get());
  RatingBlock block;
  parse(std::string_view(copy.get(), text.size()), block);
  return block;
}

RatingBlock user_items(std::string_view text) {
  return parsed(text, [](std::string_view copy, RatingBlock& block) { parse_user_items(copy, block); });
}

RatingBlock netflix(std::string_view text, std::optional<std::int64_t> item = {}) {
  return parsed(text, [&](std::string_view copy, RatingBlock& block) { parse_netflix(copy, item, block); });
}

TEST(UserItems, GivesARatingForEachItem) {
  const RatingBlock block = user_items("0 10 11 12\n1 11\r\n2 10 12 ");
  EXPECT_EQ(rating_rows(block), (Rows{"0 10", "0 11", "0 12", "1 11", "2 10", "2 12"}));
  EXPECT_EQ(block.items.numbers, (std::vector<std::int64_t>{10, 11, 12}));
}

TEST(UserItems, CountsUsersWithoutItemsAsLines) {
  const RatingBlock block = user_items("0\n1 5\n2 \n\n");
  EXPECT_EQ(rating_rows(block), (Rows{"1 5"}));
  EXPECT_EQ(block.line_count, 4u);
  EXPECT_EQ(block.blank_lines, 1u);
  EXPECT_TRUE(block.bad_lines.empty());
}

TEST(UserItems, RefusesALineWithAMissingId) {
  const RatingBlock block = user_items("0 1 nan 3\n1 2\n");
  EXPECT_EQ(rating_rows(block), (Rows{"1 2"}));
  EXPECT_EQ(bad_rows(block), (Rows{"1:5: item: expected an id, found \"nan\""}));
}

TEST(Netflix, TakesTheItemFromTheLineAbove) {
  const RatingBlock block =
      netflix("1:\n1488844,3,2005-09-06\n822109,5,2005-05-13\n2:\r\n885013,4,2005-10-19\r\n");
  EXPECT_EQ(rating_rows(block),
            (Rows{"1488844 1 3 1125964800", "822109 1 5 1115942400", "885013 2 4 1129680000"}));
  EXPECT_EQ(block.line_count, 5u);
}

TEST(Netflix, GoesOnBelowTheItemOfAnEarlierBlock) {
  EXPECT_EQ(rating_rows(netflix("5,3,2005-09-06\n", 17770)), (Rows{"5 17770 3 1125964800"}));
  EXPECT_EQ(last_netflix_item("1:\n5,3,2005-09-06\n2:\r\n6,3,2005-09-06\n", {}), 2);
  EXPECT_EQ(last_netflix_item("5,3,2005-09-06\n1:2\nx:\n", 7), 7);
  EXPECT_EQ(last_netflix_item("3:", {}), 3);
  EXPECT_EQ(last_netflix_item("", {}), std::nullopt);
}

TEST(Netflix, RefusesWhatIsNeitherItemNorRating) {
  const RatingBlock block =
      netflix("5,3,2005-09-06\n1:\n30878\n5,x,2005-09-06\n5,3,2005-13-06\n,3,2005-09-06\n");
  EXPECT_EQ(block.size(), 0u);
  EXPECT_EQ(bad_rows(block), (Rows{"1:1: line: expected ITEM: before ratings, found \"5,3,2005-09-06\"",
                                   "3:1: line: expected USER,VALUE,YYYY-MM-DD or ITEM:, found \"30878\"",
                                   "4:3: value: expected a number, found \"x\"",
                                   "5:5: time: expected YYYY-MM-DD, found \"2005-13-06\"",
                                   "6:1: user: expected an id, found nothing"}));
}

}  // namespace
}  // namespace chunkhit
