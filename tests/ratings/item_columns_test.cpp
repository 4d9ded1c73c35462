#include <gtest/gtest.h>

#include "chunkhit/error.h"
#include "ratings/pack_rows.h"
#include "ratings/rating_packs.h"
#include "small_ratings.h"

namespace chunkhit {
namespace {

using Numbers = std::vector<std::uint32_t>;

// Item             0  1  2  3  4
const Numbers kCounts{2, 0, 5, 2, 1};

TEST(ItemColumns, ComeByPopularityAndOfEqualOnesTheFirst) {
  const ItemColumns made = order_items(kCounts, ItemOrder::popularity, {});
  EXPECT_EQ(made.items, (Numbers{2, 0, 3, 4}));
  EXPECT_EQ(made.columns, (Numbers{1, kNoColumn, 0, 2, 3}));
  EXPECT_EQ(made.counts, (std::vector<std::uint64_t>{5, 2, 2, 1}));
}

TEST(ItemColumns, ComeAsTheInputHasThem) {
  EXPECT_EQ(order_items(kCounts, ItemOrder::first, {}).items, (Numbers{0, 2, 3, 4}));
}

TEST(ItemColumns, ComeByTheirIds) {
  EXPECT_EQ(order_items(kCounts, ItemOrder::sorted, Numbers{4, 7, 3, 1, 2, 0}).items, (Numbers{4, 3, 2, 0}));
}

TEST(ItemColumns, KeepThoseOfAnotherPackThatHaveNoRatings) {
  const ItemColumns made = reuse_items(kCounts, Numbers{9, 1, 2, kNoItem});
  EXPECT_EQ(made.items, (Numbers{9, 1, 2, kNoItem}));
  EXPECT_EQ(made.columns, (Numbers{kNoColumn, 1, 2, kNoColumn, kNoColumn}));
  EXPECT_EQ(made.counts, (std::vector<std::uint64_t>{0, 0, 5, 0}));
}

TEST(ItemColumns, AreRefusedWhenAnItemIsThereTwice) {
  EXPECT_THROW((void)reuse_items(kCounts, Numbers{2, 0, 2}), Error);
}

TEST(ItemColumns, OfAnotherPackAreEmptyWhereTheirItemsHaveTooFewRatings) {
  const std::vector<Rating> ratings{{0, 0, 1}, {1, 0, 1}, {2, 0, 1}, {0, 1, -2.5F}, {2, 2, 9}};
  const std::vector<std::uint32_t> frozen{1, 0};
  RatingStore store({});
  append(store, ratings);
  const RatingPacks made = make_rating_packs(store, {.rules = {.min_item = 2}, .order = PackOrder::input},
                                             {.sorted = {}, .frozen = frozen});
  EXPECT_EQ(made.columns().items, frozen);
  EXPECT_EQ(text_of(fill(made.packs[0]).x), "1=1 | 1=1 | 1=1 ");
  EXPECT_EQ(made.packs[0].stats().x.nnz, 3u);
}

}  // namespace
}  // namespace chunkhit
