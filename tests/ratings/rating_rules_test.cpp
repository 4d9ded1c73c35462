#include "ratings/rating_rules.h"

#include <gtest/gtest.h>

#include <limits>
#include <sstream>
#include <string>

#include "chunkhit/error.h"

namespace chunkhit {
namespace {

// Two users. User 10 rated item 4 three times, item 6 with 0 and item 8 once; user 11 rated item 4 with 0 and
// item 8 once.
RatingRows example() {
  RatingRows rows;
  rows.first_user = 10;
  rows.indptr = {0, 5, 7};
  rows.items = {4, 4, 4, 6, 8, /**/ 4, 8};
  rows.values = {3, 5, 2, 0, 4, /**/ 0, 1};
  rows.times = {30, 10, 30, 40, 50, /**/ 60, 70};
  rows.positions = {0, 1, 4, 2, 3, /**/ 0, 1};
  return rows;
}

struct Outcome {
  std::string rows;   ///< "user: item=value@time#position ..."
  std::string steps;  ///< users x items, ratings after each step
};

Outcome apply(const RatingRules& rules, RatingRows rows = example()) {
  ItemSteps items(9);
  const RowStepCounts counts = apply_rules(rules, rows, items);
  std::ostringstream text;
  for (std::size_t index = 0; index < rows.row_count(); ++index) {
    const RatingRow row = rows.row(index);
    text << row.user << ":";
    for (std::size_t at = 0; at < row.items.size(); ++at) {
      text << ' ' << row.items[at] << '=' << (row.values.empty() ? 1 : row.values[at]);
      if (!row.times.empty()) text << '@' << row.times[at] << '#' << row.positions[at];
    }
    text << '\n';
  }
  std::ostringstream steps;
  for (std::size_t step = 0; step < kRowSteps; ++step)
    steps << counts.users[step] << 'x' << items.counts()[step] << ' ' << counts.ratings[step] << '\n';
  return {text.str(), steps.str()};
}

TEST(RatingRules, DropZerosThenMergeDuplicates) {
  const Outcome outcome = apply({.duplicates = Duplicates::first});
  EXPECT_EQ(outcome.rows, "10: 4=5@10#1 8=4@50#3\n11: 8=1@70#1\n");
  EXPECT_EQ(outcome.steps, "2x3 7\n2x2 5\n2x2 3\n2x2 3\n");
}

TEST(RatingRules, KeepZerosWhenAsked) {
  EXPECT_EQ(apply({.zeros = Zeros::keep, .duplicates = Duplicates::first}).rows,
            "10: 4=5@10#1 6=0@40#2 8=4@50#3\n11: 4=0@60#0 8=1@70#1\n");
}

TEST(RatingRules, TakeTheLastByTimeAndOfEqualTimesTheLaterInTheInput) {
  EXPECT_EQ(apply({.duplicates = Duplicates::last}).rows, "10: 4=2@30#4 8=4@50#3\n11: 8=1@70#1\n");
  RatingRows rows = example();
  rows.times[1] = 31;
  EXPECT_EQ(apply({.duplicates = Duplicates::last}, rows).rows, "10: 4=5@31#1 8=4@50#3\n11: 8=1@70#1\n");
}

// It took the first in the input, against its help.
TEST(RatingRules, TakeTheFirstByTimeAndOfEqualTimesTheFirstInTheInput) {
  RatingRows rows = example();
  EXPECT_EQ(apply({.duplicates = Duplicates::first}, rows).rows, "10: 4=5@10#1 8=4@50#3\n11: 8=1@70#1\n");
  rows.times[1] = 30;
  EXPECT_EQ(apply({.duplicates = Duplicates::first}, rows).rows, "10: 4=3@30#0 8=4@50#3\n11: 8=1@70#1\n");
  rows.times.clear();
  EXPECT_EQ(apply({.duplicates = Duplicates::first}, rows).rows, "10: 4=3 8=4\n11: 8=1\n");
}

TEST(RatingRules, KeepAllByTimeAndEqualTimesAsInTheInput) {
  const Outcome outcome = apply({.duplicates = Duplicates::keep});
  EXPECT_EQ(outcome.rows, "10: 4=5@10#1 4=3@30#0 4=2@30#4 8=4@50#3\n11: 8=1@70#1\n");
  EXPECT_EQ(outcome.steps, "2x3 7\n2x2 5\n2x2 5\n2x2 5\n");
  const Outcome above = apply({.duplicates = Duplicates::keep, .above = 2.5F});
  EXPECT_EQ(above.rows, "10: 4=5@10#1 4=3@30#0 8=4@50#3\n11:\n");
  EXPECT_EQ(above.steps, "2x3 7\n2x2 5\n2x2 5\n1x2 3\n");
}

TEST(RatingRules, TakeTheLastInTheInputWhereThereAreNoTimes) {
  RatingRows rows = example();
  rows.times.clear();
  EXPECT_EQ(apply({.duplicates = Duplicates::last}, rows).rows, "10: 4=2 8=4\n11: 8=1\n");
}

TEST(RatingRules, TakeTheLargestOfDuplicatesAndTheFirstOfEqualOnes) {
  EXPECT_EQ(apply({.duplicates = Duplicates::max}).rows, "10: 4=5@10#1 8=4@50#3\n11: 8=1@70#1\n");
  RatingRows rows = example();
  rows.values[0] = 5;
  EXPECT_EQ(apply({.duplicates = Duplicates::max}, rows).rows, "10: 4=5@30#0 8=4@50#3\n11: 8=1@70#1\n");
}

TEST(RatingRules, SumDuplicatesAndKeepTheLastTime) {
  EXPECT_EQ(apply({.duplicates = Duplicates::sum}).rows, "10: 4=10@30#4 8=4@50#3\n11: 8=1@70#1\n");
}

TEST(RatingRules, SumDuplicatesOfRatingsWithoutValues) {
  RatingRows rows = example();
  rows.values.clear();
  EXPECT_EQ(apply({.duplicates = Duplicates::sum}, rows).rows,
            "10: 4=3@30#4 6=1@40#2 8=1@50#3\n11: 4=1@60#0 8=1@70#1\n");
}

TEST(RatingRules, KeepValuesAboveAbove) {
  const Outcome above = apply({.duplicates = Duplicates::first, .above = 4.0F});
  EXPECT_EQ(above.rows, "10: 4=5@10#1\n11:\n");
  EXPECT_EQ(above.steps, "2x3 7\n2x2 5\n2x2 3\n1x1 1\n");
}

TEST(RatingRules, BinarizeAfterTheValuesWereLookedAt) {
  EXPECT_EQ(apply({.duplicates = Duplicates::first, .above = 4.0F, .binarize = true}).rows,
            "10: 4=1@10#1\n11:\n");
}

TEST(RatingRules, NameTheFirstDuplicateAfterZerosWereDropped) {
  RatingRows rows = example();
  ItemSteps items(9);
  const RowStepCounts counts = apply_rules({}, rows, items);
  ASSERT_TRUE(counts.first_duplicate);
  EXPECT_EQ(*counts.first_duplicate, (std::pair<std::uint32_t, std::uint32_t>(10, 4)));
  RatingRows zeros = example();
  zeros.values = {3, 0, 0, 0, 4, 0, 1};
  EXPECT_FALSE(apply_rules({}, zeros, items).first_duplicate);
}

TEST(RatingRules, RefuseValuesThatAreNotFinite) {
  for (const float value :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    RatingRows rows = example();
    rows.values[4] = value;
    EXPECT_THROW(apply({.duplicates = Duplicates::first}, rows), Error);
  }
  RatingRows rows = example();
  rows.values[0] = rows.values[1] = std::numeric_limits<float>::max();
  EXPECT_THROW(apply({.duplicates = Duplicates::sum}, rows), Error);
}

}  // namespace
}  // namespace chunkhit
