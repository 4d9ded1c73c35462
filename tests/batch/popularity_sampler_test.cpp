#include <gtest/gtest.h>

#include <vector>

#include "chunkhit/sparse_loader.h"

namespace chunkhit {
namespace {

std::vector<std::int32_t> draws(const PopularitySampler& sampler, const std::vector<std::int32_t>& own,
                                std::size_t count, std::uint64_t seed = 1) {
  std::vector<std::int32_t> items(count);
  sampler.draw(own, seed, 0, items);
  return items;
}

std::vector<double> shares(const std::vector<std::int32_t>& items, std::size_t item_count) {
  std::vector<double> shares(item_count);
  for (const std::int32_t item : items)
    shares[static_cast<std::size_t>(item)] += 1.0 / static_cast<double>(items.size());
  return shares;
}

TEST(PopularitySampler, DrawsInProportionToTheCounts) {
  const PopularitySampler sampler(std::vector<std::uint64_t>{1, 0, 2, 5, 92});
  const std::vector<double> found = shares(draws(sampler, {}, 1'000'000), 5);
  const std::vector<double> expected{0.01, 0, 0.02, 0.05, 0.92};
  // Five standard deviations of the most uncertain share are 0.0014.
  for (std::size_t i = 0; i < 5; ++i) EXPECT_NEAR(found[i], expected[i], 0.0014) << i;
  EXPECT_EQ(found[1], 0);
}

TEST(PopularitySampler, TakesAPowerOfTheCounts) {
  const PopularitySampler sampler(std::vector<std::uint64_t>{1, 16, 81}, 0.5);
  const std::vector<double> found = shares(draws(sampler, {}, 1'000'000), 3);
  EXPECT_NEAR(found[0], 1.0 / 14, 0.0025);
  EXPECT_NEAR(found[1], 4.0 / 14, 0.0025);
  EXPECT_NEAR(found[2], 9.0 / 14, 0.0025);
}

TEST(PopularitySampler, LeavesTheRowsOwnItemsOut) {
  const PopularitySampler sampler(std::vector<std::uint64_t>{3, 6, 1, 90});
  const std::vector<double> found = shares(draws(sampler, {0, 3}, 700'000), 4);
  EXPECT_EQ(found[0] + found[3], 0);
  EXPECT_NEAR(found[1], 6.0 / 7, 0.0025);
}

TEST(PopularitySampler, FindsTheLastItemsOfARowThatHasNearlyAll) {
  std::vector<std::uint64_t> counts(1000, 1'000'000'000);
  counts[17] = 1;
  counts[18] = 3;
  std::vector<std::int32_t> own;
  for (std::int32_t item = 0; item < 1000; ++item)
    if (item != 17 && item != 18) own.push_back(item);
  const std::vector<double> found = shares(draws(PopularitySampler(counts), own, 4000), 1000);
  EXPECT_NEAR(found[17], 0.25, 0.035);
  EXPECT_NEAR(found[18], 0.75, 0.035);
}

TEST(PopularitySampler, RefusesWhereNothingIsLeft) {
  EXPECT_THROW(PopularitySampler(std::vector<std::uint64_t>{0, 0}), Error);
  EXPECT_THROW(PopularitySampler(std::vector<std::uint64_t>{}), Error);
  const PopularitySampler sampler(std::vector<std::uint64_t>{1, 0, 2});
  EXPECT_THROW(draws(sampler, {0, 2}, 1), Error);
}

TEST(PopularitySampler, IsAFunctionOfSeedAndPlace) {
  const PopularitySampler sampler(std::vector<std::uint64_t>(100, 1));
  const std::vector<std::int32_t> all = draws(sampler, {5}, 50);
  std::vector<std::int32_t> tail(20);
  sampler.draw(std::vector<std::int32_t>{5}, 1, 30, tail);
  EXPECT_EQ(tail, (std::vector<std::int32_t>{all.begin() + 30, all.end()}));
  EXPECT_NE(draws(sampler, {5}, 50, 2), all);
}

}  // namespace
}  // namespace chunkhit
