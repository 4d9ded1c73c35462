#include "ratings/rating_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <random>
#include <tuple>

#include "chunkhit/error.h"
#include "ratings/rating_rules.h"
#include "small_ratings.h"
#include "temporary_folder.h"

namespace chunkhit {
namespace {

using Numbers = RatingRows::Numbers<std::uint32_t>;

TEST(RatingStore, GivesRowsWithItemsAscendingAndEqualOnesAsTheyCame) {
  RatingStore store({.keeps_times = true});
  append(store, {{2, 7, 1, 100}, {0, 5, 2, 101}, {2, 3, 3, 102}, {2, 7, 4, 99}, {0, 1, 5, 104}});
  const RatingRows rows = store.bucket(0, RowForm::with_positions);
  EXPECT_EQ(rows.indptr, (std::vector<std::uint64_t>{0, 2, 2, 5}));
  EXPECT_EQ(rows.items, (Numbers{1, 5, 3, 7, 7}));
  EXPECT_EQ(rows.values, (RatingRows::Numbers<float>{5, 2, 3, 1, 4}));
  EXPECT_EQ(rows.times, (RatingRows::Numbers<std::int64_t>{104, 101, 102, 100, 99}));
  EXPECT_EQ(rows.positions, (Numbers{1, 0, 1, 0, 2}));
  EXPECT_EQ(store.user_count(), 3u);
  EXPECT_EQ(store.item_count(), 8u);
}

TEST(RatingStore, SortsOnlyRowsWithRepeatsWhereNoOrderIsAskedFor) {
  RatingStore store({});
  append(store, {{0, 5, 2}, {1, 9, 1}, {0, 1, 5}, {1, 3, 2}, {1, 9, 3}, {0, 9, 4}, {2, 3, 6}});
  const RatingRows rows = store.bucket(0, RowForm::as_they_came);
  EXPECT_EQ(rows.indptr, (std::vector<std::uint64_t>{0, 3, 6, 7}));
  EXPECT_EQ(rows.items, (Numbers{5, 1, 9, 3, 9, 9, 3}));
  EXPECT_EQ(rows.values, (RatingRows::Numbers<float>{2, 5, 4, 2, 1, 3, 6}));
  EXPECT_TRUE(rows.positions.empty());
}

TEST(RatingStore, SortsRowsOfFarMoreItemsThanRatings) {
  RatingStore store({});
  append(store, {{0, 4'000'000, 1}, {0, 7, 2}});
  EXPECT_EQ(store.bucket(0, RowForm::as_they_came).items, (Numbers{7, 4'000'000}));
}

TEST(RatingStore, KeepsNoValuesWhereNobodyGaveAny) {
  RatingStore store({});
  store.append(Numbers{0}, Numbers{4}, {}, {});
  EXPECT_TRUE(store.bucket(0, RowForm::ascending).values.empty());
  store.append(Numbers{0}, Numbers{2}, std::vector<float>{0.5F}, {});
  EXPECT_EQ(store.bucket(0, RowForm::ascending).values, (RatingRows::Numbers<float>{0.5F, 1}));
}

std::vector<Rating> random_ratings(std::size_t count, std::uint32_t users, std::uint32_t items) {
  std::mt19937 random(3);
  std::vector<Rating> ratings(count);
  for (Rating& rating : ratings)
    rating = {static_cast<std::uint32_t>(random() % users), static_cast<std::uint32_t>(random() % items),
              static_cast<float>(random() % 10), static_cast<std::int64_t>(random()) - 1'000'000'000};
  return ratings;
}

/// (user, item, value, time) in the order of rows.
using Entries = std::vector<std::tuple<std::uint32_t, std::uint32_t, float, std::int64_t>>;

Entries entries_of(const RatingStore& store) {
  Entries entries;
  for (std::size_t bucket = 0; bucket < store.bucket_count(); ++bucket) {
    const RatingRows rows = store.bucket(bucket, RowForm::ascending);
    for (std::size_t index = 0; index < rows.row_count(); ++index) {
      const RatingRow row = rows.row(index);
      for (std::size_t at = 0; at < row.items.size(); ++at)
        entries.emplace_back(row.user, row.items[at], row.values[at], row.times[at]);
    }
  }
  return entries;
}

/// What a store of these ratings gives.
Entries sorted_entries(const std::vector<Rating>& ratings) {
  Entries expected;
  for (const Rating& rating : ratings)
    expected.emplace_back(rating.user, rating.item, rating.value, rating.time);
  std::stable_sort(expected.begin(), expected.end(), [](const auto& a, const auto& b) {
    return std::pair(std::get<0>(a), std::get<1>(a)) < std::pair(std::get<0>(b), std::get<1>(b));
  });
  return expected;
}

TEST(RatingStore, GivesTheSameFromDiskAsFromMemoryAndLeavesNothingBehind) {
  const std::vector<Rating> ratings = random_ratings(30'000, 5000, 300);
  const Entries expected = sorted_entries(ratings);
  const TemporaryFolder folder;
  for (const std::uint64_t memory : {1ull << 30, 300'000ull, 100'000ull, 1ull}) {
    RatingStore store({.memory_bytes = memory, .folder = folder.path(), .keeps_times = true});
    append(store, ratings);
    EXPECT_EQ(store.is_spilled(), memory < 1 << 30);
    EXPECT_EQ(entries_of(store), expected) << memory;
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  }
}

TEST(RatingStore, GivesTheSameOnceARatingNeedsAWideRecord) {
  std::vector<Rating> many_values = random_ratings(10'000, 5000, 300);
  for (std::size_t at = 0; at < many_values.size(); ++at)
    many_values[at].value = static_cast<float>(at % 257);
  std::vector<Rating> large_items = random_ratings(10'000, 5000, 300);
  large_items.back().item = 1u << 22;
  const TemporaryFolder folder;
  for (const std::vector<Rating>& last : {many_values, large_items})
    for (const std::uint64_t memory : {1ull << 30, 700'000ull, 100'000ull, 1ull}) {
      std::vector<Rating> ratings = random_ratings(30'000, 5000, 300);
      RatingStore store({.memory_bytes = memory, .folder = folder.path(), .keeps_times = true});
      append(store, ratings);
      append(store, last);
      ratings.insert(ratings.end(), last.begin(), last.end());
      EXPECT_EQ(entries_of(store), sorted_entries(ratings)) << memory;
      std::uint64_t count = 0;
      for (std::size_t bucket = 0; bucket < store.bucket_count(); ++bucket) {
        EXPECT_EQ(store.ratings_in(bucket), store.count_ratings(bucket).back());
        count += store.ratings_in(bucket);
      }
      EXPECT_EQ(count, ratings.size());
    }
}

TEST(RatingStore, KeepsTheBitsOf256ValuesInNarrowRecords) {
  std::vector<Rating> ratings{{0, 0, -0.0F}, {0, 1, 0.0F}};
  for (std::uint32_t item = 2; item < 256; ++item)
    ratings.push_back({0, item, 1.0F / static_cast<float>(item)});
  RatingStore store({});
  append(store, ratings);
  const RatingRows rows = store.bucket(0, RowForm::ascending);
  EXPECT_TRUE(std::signbit(rows.values[0]));
  EXPECT_FALSE(std::signbit(rows.values[1]));
  for (std::uint32_t item = 0; item < 256; ++item) EXPECT_EQ(rows.values[item], ratings[item].value);
}

// 100,000 narrow records are 0.5 MB; their rows take 0.8 MB, with positions 1.2 MB.
TEST(RatingStore, IsSpilledWhereItsRowsDoNotFitBesideIt) {
  const TemporaryFolder folder;
  for (const auto& [memory, form, spills] :
       {std::tuple{800'000u, RowForm::with_positions, false}, std::tuple{700'000u, RowForm::ascending, false},
        std::tuple{700'000u, RowForm::with_positions, true}}) {
    RatingStore store({.memory_bytes = memory, .folder = folder.path()});
    append(store, random_ratings(100'000, 1000, 300'000));
    EXPECT_FALSE(store.is_spilled());
    std::vector<PackStep> steps;
    const CleanRows rows = clean_rows(store, {.duplicates = Duplicates::last}, form, false, steps);
    EXPECT_EQ(store.is_spilled(), spills);
    EXPECT_EQ(rows.is_spilled(), spills);
  }
}

TEST(RatingStore, GivesSomeRowsOfABucket) {
  RatingStore store({});
  append(store, {{1500, 1}, {1501, 2}, {1501, 3}, {1503, 4}, {1023, 9}});
  const RatingRows rows = store.rows(1501, 1503, RowForm::ascending);
  EXPECT_EQ(rows.first_user, 1501u);
  EXPECT_EQ(rows.indptr, (std::vector<std::uint64_t>{0, 2, 2}));
  EXPECT_EQ(rows.items, (Numbers{2, 3}));
}

ErrorCode code_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "nothing was thrown";
  return ErrorCode::usage;
}

TEST(RatingStore, RefusesNumbersAndLengthsThatCannotBe) {
  RatingStore store({.keeps_times = true});
  const std::vector<std::int64_t> time{1};
  EXPECT_EQ(code_of([&] { store.append(Numbers{UINT32_MAX}, Numbers{0}, {}, time); }), ErrorCode::bad_data);
  EXPECT_EQ(code_of([&] { store.append(Numbers{0}, Numbers{UINT32_MAX}, {}, time); }), ErrorCode::bad_data);
  EXPECT_EQ(code_of([&] { store.append(Numbers{0, 1}, Numbers{0}, {}, {}); }), ErrorCode::bad_data);
  store.append(Numbers{0}, Numbers{0}, {}, time);
  EXPECT_EQ(code_of([&] { store.append(Numbers{0}, Numbers{0}, {}, {}); }), ErrorCode::bad_data);
  EXPECT_EQ(store.rating_count(), 1u);
}

TEST(RatingStore, SaysWhereItCannotWrite) {
  RatingStore store({.memory_bytes = 1, .folder = "/nowhere/to/be/found"});
  EXPECT_EQ(code_of([&] { append(store, random_ratings(10'000, 5000, 10)); }), ErrorCode::cannot_write);
}

}  // namespace
}  // namespace chunkhit
