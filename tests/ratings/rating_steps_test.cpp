#include <gtest/gtest.h>

#include "ratings/rating_rules.h"
#include "small_ratings.h"

namespace chunkhit {
namespace {

// u: user, i: item, 1: a rating
//      i0 i1 i2 i3
//  u0   1  1  1  .
//  u1   1  1  .  .
//  u2   .  1  1  .
//  u3   .  .  .  1
//  u4   1  .  .  .
const std::vector<Rating> kExample{{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}, {2, 1}, {2, 2}, {3, 3}, {4, 0}};

struct Left {
  std::vector<std::uint8_t> users;
  std::vector<std::uint8_t> items;
  std::string steps;
};

Left apply(const RatingRules& rules) {
  RatingStore store({});
  append(store, kExample);
  std::vector<PackStep> steps;
  const CleanRows rows = clean_rows(store, rules, RowForm::as_they_came, false, steps);
  steps.clear();
  LiveRatings live{std::vector<std::uint8_t>(5, 1), std::vector<std::uint8_t>(4, 1)};
  keep_frequent(rows, rules, live, steps);
  return {live.users, live.items, text_of(steps)};
}

using Bits = std::vector<std::uint8_t>;

TEST(MinUserAndItem, HoldBothInTheEnd) {
  // min-user 2 drops u3 and u4; i0 then has u0 and u1 left, i1 three, i2 two: nothing more to drop.
  const Left two = apply({.min_user = 2, .min_item = 2});
  EXPECT_EQ(two.users, (Bits{1, 1, 1, 0, 0}));
  EXPECT_EQ(two.steps, "min-item and min-user 3x3 7");
  // min-item 3: i2, i3 go (u4 is gone, so i0 has 2 and goes too); only i1 is left, and no user has 2.
  const Left three = apply({.min_user = 2, .min_item = 3});
  EXPECT_EQ(three.users, (Bits{0, 0, 0, 0, 0}));
  EXPECT_EQ(three.steps, "min-item and min-user 0x0 0");
}

TEST(MinUserAndItem, CountAlone) {
  EXPECT_EQ(apply({.min_user = 3}).steps, "min-user 1x3 3");
  EXPECT_EQ(apply({.min_item = 2}).steps, "min-item 4x3 8");
  EXPECT_EQ(apply({}).steps, "");
}

TEST(Steps, AreCountedBeforeAndAfterEach) {
  RatingStore store({});
  append(store, {{0, 0, 4}, {0, 1, 2}, {0, 0, 4}, {1, 1, 3}, {2, 2, 0}, {3, 0, 1}});
  std::vector<PackStep> steps;
  const RatingRules rules{.duplicates = Duplicates::last, .above = 3.0F, .binarize = true};
  const CleanRows rows = clean_rows(store, rules, RowForm::as_they_came, false, steps);
  EXPECT_EQ(text_of(steps), "input 4x3 6, zeros 3x2 5, duplicates 3x2 4, above 1x1 1, binarize 1x1 1");
}

TEST(Steps, EndWhereADuplicateIsAnErrorAndNameTheLowest) {
  RatingStore store({});
  append(store, {{4000, 1}, {4000, 1}, {2000, 7}, {2000, 5}, {2000, 7}, {2000, 5}, {2000, 5}});
  std::vector<PackStep> steps;
  try {
    (void)clean_rows(store, {}, RowForm::as_they_came, false, steps);
    FAIL() << "nothing was thrown";
  } catch (const DuplicateError& error) {
    EXPECT_EQ(error.user, 2000u);
    EXPECT_EQ(error.item, 5u);
    EXPECT_EQ(error.count, 4u);
    EXPECT_EQ(error.code(), ErrorCode::bad_data);
  }
}

TEST(KnownItems, AreTheOnlyOnesLeft) {
  RatingStore store({});
  append(store, kExample);
  std::vector<PackStep> steps;
  const CleanRows rows = clean_rows(store, {}, RowForm::as_they_came, false, steps);
  steps.clear();
  LiveRatings live{Bits(5, 1), Bits(4, 1)};
  keep_known_items(rows, std::vector<std::uint32_t>{3, 2, 99, UINT32_MAX}, {}, live, steps);
  EXPECT_EQ(live.users, (Bits{1, 0, 1, 1, 0}));
  EXPECT_EQ(text_of(steps), "reuse-ids 3x2 3");
}

}  // namespace
}  // namespace chunkhit
