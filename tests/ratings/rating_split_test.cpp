#include "ratings/rating_split.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <set>

#include "chunkhit/error.h"
#include "small_ratings.h"

namespace chunkhit {
namespace {

/// Ratings, cleaned, all of them live.
struct Example {
  explicit Example(const std::vector<Rating>& ratings, bool timed = true) : rows(0, "") {
    RatingStore store({.keeps_times = timed});
    append(store, ratings);
    std::vector<PackStep> steps;
    rows = clean_rows(store, {}, RowForm::with_positions, false, steps);
    live = {std::vector<std::uint8_t>(store.user_count(), 1),
            std::vector<std::uint8_t>(store.item_count(), 1)};
    count = store.rating_count();
    has_times = timed;
  }
  [[nodiscard]] RatingSplit split(const RatingSplitSpec& spec, std::uint64_t seed = 0) const {
    return {spec, seed, rows, live, count, has_times};
  }
  /// The splits of a user's ratings in the order of items: t, v, T (test).
  [[nodiscard]] std::string splits(const RatingSplit& split, std::uint32_t user) const {
    const RatingRow row = rows.row(user);
    std::vector<std::uint32_t> entries(row.items.size());
    for (std::uint32_t at = 0; at < entries.size(); ++at) entries[at] = at;
    std::vector<Split> splits;
    split.divide(row, entries, splits);
    std::string text;
    for (const Split each : splits) text += "tvT"[static_cast<int>(each)];
    return text;
  }
  CleanRows rows;
  LiveRatings live;
  std::uint64_t count = 0;
  bool has_times = false;
};

std::vector<Rating> one_user(std::uint32_t count) {
  std::vector<Rating> ratings;
  for (std::uint32_t item = 0; item < count; ++item) ratings.push_back({0, item});
  return ratings;
}

std::size_t count_of(const std::string& text, char letter) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), letter));
}

TEST(RatioSplit, HoldsOutWholePartsOfEachUsersRatings) {
  RatingSplitSpec spec{.split_by = SplitKind::ratio};
  spec.test.share = 0.2;
  spec.validation.share = 0.1;
  // ratings:            1  4  5  9 10 20 -> int(0.2 n) and int(0.1 n)
  const std::map<std::uint32_t, std::pair<std::size_t, std::size_t>> expected{
      {1, {0, 0}}, {4, {0, 0}}, {5, {1, 0}}, {9, {1, 0}}, {10, {2, 1}}, {20, {4, 2}}};
  for (const auto& [ratings, counts] : expected) {
    const Example example(one_user(ratings));
    const std::string splits = example.splits(example.split(spec), 0);
    EXPECT_EQ(count_of(splits, 'T'), counts.first) << ratings;
    EXPECT_EQ(count_of(splits, 'v'), counts.second) << ratings;
  }
}

TEST(RatioSplit, LeavesOneRatingForTrainingWhateverTheCounts) {
  RatingSplitSpec spec{.split_by = SplitKind::ratio};
  spec.test.count = 2;
  spec.validation.count = 2;
  const std::array<std::string, 5> expected{"t", "Tt", "TTt", "TTtv", "TTtvv"};
  for (std::uint32_t ratings = 1; ratings <= 5; ++ratings) {
    const Example example(one_user(ratings));
    std::string splits = example.splits(example.split(spec), 0);
    std::sort(splits.begin(), splits.end());
    EXPECT_EQ(splits, expected[ratings - 1]);
  }
}

TEST(RatioSplit, IsDrawnBySeedUserAndItem) {
  RatingSplitSpec spec{.split_by = SplitKind::ratio};
  spec.test.share = 0.5;
  const Example example(one_user(40));
  const std::string first = example.splits(example.split(spec, 1), 0);
  EXPECT_EQ(example.splits(example.split(spec, 1), 0), first);
  EXPECT_NE(example.splits(example.split(spec, 2), 0), first);
  std::vector<Rating> both = one_user(40);
  for (std::uint32_t item = 0; item < 40; ++item) both.push_back({1, item});
  const Example two(both);
  EXPECT_EQ(two.splits(two.split(spec, 1), 0), first);
  EXPECT_NE(two.splits(two.split(spec, 1), 1), first);
}

TEST(LeaveOneOut, TakesTheLastByTimeAndOfEqualTimesTheLaterInTheInput) {
  //                      user 0: items in the input 3 1 2 0, times 5 9 9 7
  const Example example(
      {{0, 3, 1, 5}, {0, 1, 1, 9}, {0, 2, 1, 9}, {0, 0, 1, 7}, {1, 0, 1, 1}, {2, 1, 1, 2}, {2, 0, 1, 1}});
  RatingSplitSpec spec{.split_by = SplitKind::leave_one_out};
  const RatingSplit test_only = example.split(spec);
  EXPECT_EQ(example.splits(test_only, 0), "ttTt");
  EXPECT_EQ(example.splits(test_only, 1), "t");
  EXPECT_EQ(example.splits(test_only, 2), "tT");
  EXPECT_EQ(test_only.splits(), (std::vector<Split>{Split::train, Split::test}));
  spec.validation.count = 1;
  const RatingSplit both = example.split(spec);
  EXPECT_EQ(example.splits(both, 0), "tvTt");
  EXPECT_EQ(example.splits(both, 2), "tT");
}

TEST(LeaveOneOut, RefusesToHoldOutMoreOrLessThanOne) {
  RatingSplitSpec spec{.split_by = SplitKind::leave_one_out, .validation = {1, 0}, .test = {1, 0}};
  check_split(spec);
  spec.test = {2, 0};
  EXPECT_THROW(check_split(spec), Error);
  spec.test = {0, 0.1};
  EXPECT_THROW(check_split(spec), Error);
  spec.test = {};
  spec.validation = {0, 0.1};
  EXPECT_THROW(check_split(spec), Error);
}

TEST(LeaveOneOut, DrawsOneWhereThatIsAskedFor) {
  const Example example(one_user(30), false);
  const RatingSplitSpec spec{.split_by = SplitKind::leave_one_out, .split_order = SplitOrder::random};
  std::set<std::string> seen;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const std::string splits = example.splits(example.split(spec, seed), 0);
    EXPECT_EQ(count_of(splits, 'T'), 1u);
    seen.insert(splits);
  }
  EXPECT_GT(seen.size(), 5u);
}

// It drew one at random without a word.
TEST(LeaveOneOut, FailsWithoutTimesUnlessAnotherOrderIsGiven) {
  const Example example(one_user(30), false);
  try {
    static_cast<void>(example.split({.split_by = SplitKind::leave_one_out}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    EXPECT_EQ(
        std::string(error.what()),
        "`split_by` leave-one-out: the ratings have no times: `time` names their column; or `split_order` "
        "random or input");
  }
}

TEST(LeaveOneOut, TakesTheLastOfTheInputWhereThatIsAskedFor) {
  //                      user 0: items in the input 3 1 2 0, times 5 9 9 7
  const Example example({{0, 3, 1, 5}, {0, 1, 1, 9}, {0, 2, 1, 9}, {0, 0, 1, 7}});
  EXPECT_EQ(example.splits(example.split({.split_by = SplitKind::leave_one_out,
                                          .validation = {1, 0},
                                          .split_order = SplitOrder::input}),
                           0),
            "Ttvt");
}

TEST(RatioSplit, HoldsOutTheLatestOfEachUserWhereThatIsAskedFor) {
  //                      items in the input 3 1 2 0, times 5 9 -9 7
  const Example example({{0, 3, 1, 5}, {0, 1, 1, 9}, {0, 2, 1, -9}, {0, 0, 1, 7}});
  RatingSplitSpec spec{.split_by = SplitKind::ratio,
                       .validation = {0, 0.25},
                       .test = {0, 0.25},
                       .split_order = SplitOrder::time};
  EXPECT_EQ(example.splits(example.split(spec), 0), "vTtt");
  spec.split_order = SplitOrder::input;
  EXPECT_EQ(example.splits(example.split(spec), 0), "Ttvt");
  const Example without(one_user(30), false);
  spec.split_order = SplitOrder::time;
  EXPECT_THROW(static_cast<void>(without.split(spec)), Error);
  spec.split_by = SplitKind::users;
  EXPECT_THROW(check_split(spec), Error);
}

// Ten ratings by two users at the times 1 to 10, but 6 comes instead of 7: 1 2 3 4 5 6 6 8 9 10.
std::vector<Rating> ten_times() {
  std::vector<Rating> ratings;
  const std::array<std::int64_t, 10> times{1, 2, 3, 4, 5, 6, 6, 8, 9, 10};
  for (std::uint32_t at = 0; at < 10; ++at) ratings.push_back({at % 2, at, 1, times[at]});
  return ratings;
}

TEST(TimeSplit, HoldsOutTheLatestShareOfAllRatings) {
  const Example example(ten_times());
  RatingSplitSpec spec{.split_by = SplitKind::time};
  spec.test.share = 0.2;
  RatingSplit split = example.split(spec);
  EXPECT_EQ(example.splits(split, 0) + " " + example.splits(split, 1), "ttttT ttttT");
  spec.validation.share = 0.1;
  split = example.split(spec);
  EXPECT_EQ(example.splits(split, 0) + " " + example.splits(split, 1), "ttttT tttvT");
}

TEST(TimeSplit, LeavesRatingsOfOneTimeTogetherBeforeTheCut) {
  const Example example(ten_times());
  RatingSplitSpec spec{.split_by = SplitKind::time};
  spec.test.share = 0.4;  // the fourth latest is one of the two at 6
  RatingSplit split = example.split(spec);
  EXPECT_EQ(example.splits(split, 0) + " " + example.splits(split, 1), "ttttT tttTT");
  spec.test.share = 0.5;
  split = example.split(spec);
  EXPECT_EQ(example.splits(split, 0) + " " + example.splits(split, 1), "tttTT ttTTT");
}

TEST(TimeSplit, GaveValidationMoreThanItsShareWhereTimesAreEqual) {
  std::vector<Rating> ratings;
  for (std::uint32_t at = 0; at < 40; ++at)
    ratings.push_back({0, at, 1, at < 28 ? 1 : at < 36 ? 2 : 3});  // 28, 8, 4 ratings
  const Example example(ratings);
  const RatingSplit split =
      example.split({.split_by = SplitKind::time, .validation = {0, 0.05}, .test = {0, 0.25}});
  EXPECT_EQ(count_of(example.splits(split, 0), 'T'), 4);
  EXPECT_EQ(count_of(example.splits(split, 0), 'v'), 0);
}

TEST(TimeSplit, CutsAtAGivenTime) {
  const Example example(ten_times());
  RatingSplitSpec spec{.split_by = SplitKind::time};
  spec.before = 6;
  spec.validation.share = 0.2;
  const RatingSplit split = example.split(spec);
  EXPECT_EQ(example.splits(split, 0) + " " + example.splits(split, 1), "ttvTT tvTTT");
}

TEST(LatestCut, IsRightForAnyTimes) {
  const std::int64_t low = std::numeric_limits<std::int64_t>::min();
  const std::int64_t high = std::numeric_limits<std::int64_t>::max();
  const Example example({{0, 0, 1, low}, {0, 1, 1, -1}, {0, 2, 1, 0}, {0, 3, 1, 1ll << 40}, {0, 4, 1, high}});
  const std::array<std::int64_t, 6> expected{0, high, 1ll << 40, 0, -1, low};
  EXPECT_FALSE(latest_time_split(example.rows, example.live, 0));
  for (std::uint64_t count = 1; count <= 5; ++count) {
    EXPECT_EQ(latest_time_split(example.rows, example.live, count), expected[count]) << count;
    EXPECT_EQ(count_since(example.rows, example.live, expected[count]), count);
  }
  EXPECT_EQ(latest_time_split(example.rows, example.live, 6), low);
  const Example equal({{0, 0, 1, high}, {0, 1, 1, high}});
  EXPECT_FALSE(latest_time_split(equal.rows, equal.live, 1));
}

TEST(UsersSplit, HoldsOutAsManyUsersAsAsked) {
  std::vector<Rating> ratings;
  for (std::uint32_t user = 0; user < 100; ++user) ratings.push_back({user, user % 3});
  Example example(ratings);
  example.live.users[5] = 0;
  RatingSplitSpec spec{.split_by = SplitKind::users};
  spec.validation.count = 7;
  spec.test.share = 0.2;
  const RatingSplit split = example.split(spec, 4);
  std::map<Split, int> counts;
  for (std::uint32_t user = 0; user < 100; ++user) ++counts[split.split_of(user)];
  EXPECT_EQ(counts[Split::validation], 7);
  EXPECT_EQ(counts[Split::test], 19);  // int(0.2 · 99)
  EXPECT_EQ(split.split_of(5), Split::train);
  const RatingSplit other = example.split(spec, 5);
  int different = 0;
  for (std::uint32_t user = 0; user < 100; ++user) different += split.split_of(user) != other.split_of(user);
  EXPECT_GT(different, 10);
}

TEST(UsersSplit, AsksForAFifthOfAHeldOutUsersItems) {
  const Example example(one_user(1));
  const RatingSplit split = example.split({.fold_in = 0.8});
  // items:      4  5  9 10 15 100
  const std::map<std::uint32_t, int> expected{{0, 0}, {4, 0}, {5, 1}, {9, 1}, {10, 2}, {15, 3}, {100, 20}};
  for (const auto& [count, asked_count] : expected) {
    std::vector<std::uint32_t> items(count);
    for (std::uint32_t item = 0; item < count; ++item) items[item] = item * 3;
    std::vector<std::uint8_t> asked;
    split.fold(0, items, asked);
    EXPECT_EQ(std::count(asked.begin(), asked.end(), 1), asked_count) << count;
  }
}

TEST(GivenSplit, GoesByThePositionOfARatingAmongItsUsers) {
  const Example example({{0, 5, 1}, {1, 1, 1}, {0, 2, 1}, {0, 9, 1}, {0, 1, 1}, {1, 0, 1}, {2, 3, 1}}, false);
  RatingSplitSpec spec{.split_by = SplitKind::given};
  spec.files = {1, 1, 1};
  const RatingSplit split(spec, 0, example.rows, example.live, example.count, false, {{}, {}, {2, 1}, {1}});
  EXPECT_EQ(example.splits(split, 0), "Tttv");  // items 1, 2, 5, 9
  EXPECT_EQ(example.splits(split, 1), "Tt");
  EXPECT_EQ(example.splits(split, 2), "T");
  EXPECT_TRUE(split.is_given(Split::validation, Split::test));
  EXPECT_FALSE(split.is_given(Split::test, Split::validation));
}

void expect_refused(const RatingSplitSpec& spec, const std::string& words) {
  try {
    check_split(spec);
    ADD_FAILURE() << "accepted, expected: " << words;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
  }
}

TEST(SplitSpec, IsRefusedByName) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  expect_refused({.split_by = SplitKind::ratio, .test = {0, 1.5}}, "test");
  expect_refused({.split_by = SplitKind::ratio, .test = {0, nan}}, "test");
  expect_refused({.split_by = SplitKind::ratio, .validation = {0, 0.5}, .test = {0, 0.5}}, "together");
  expect_refused({.split_by = SplitKind::users, .test = {5, 0}, .fold_in = 1}, "`fold_in`");
  expect_refused({.split_by = SplitKind::users}, "users");
  expect_refused({.split_by = SplitKind::users_by_id, .test = {5, 0}}, "users-by-id");
  expect_refused({.split_by = SplitKind::users_by_id, .test_users = "list"}, "`test_users`");
  expect_refused({.split_by = SplitKind::none, .test = {5, 0}}, "need `split_by`");
  expect_refused({.split_by = SplitKind::ratio, .test = {0, 0.2}, .before = 3}, "`before`");
  expect_refused({.split_by = SplitKind::time, .test = {0, 0.2}, .before = 3}, "`before`");
  expect_refused({.split_by = SplitKind::ratio, .test_users = "list"}, "`test_users`");
  expect_refused({.split_by = SplitKind::users, .test = {1, 0}, .test_users = "list"},
                 "`test`, `test_users`");
  expect_refused({.split_by = SplitKind::given, .files = {1, 0, 0}}, "`test_file`");
  expect_refused({.split_by = SplitKind::given, .files = {0, 0, 1}}, "`train_file`");
  expect_refused({.split_by = SplitKind::given, .test = {1, 0}, .files = {1, 0, 1}}, "`validation`, `test`");
  expect_refused({.split_by = SplitKind::none, .files = {1, 0, 1}}, "`split_by` given");
  expect_refused({.split_by = SplitKind::ratio, .test = {0, 0.2}, .hide_validation = true},
                 "`hide_validation`");
}

TEST(SplitSpec, IsRefusedWhereTheRatingsDoNotFit) {
  const Example example(one_user(3), false);
  EXPECT_THROW((void)example.split({.split_by = SplitKind::users, .test = {1, 0}}), Error);
  EXPECT_THROW((void)example.split({.split_by = SplitKind::time, .test = {0, 0.5}}), Error);
}

}  // namespace
}  // namespace chunkhit
