#include "base/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <set>
#include <vector>

namespace chunkhit {
namespace {

constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15u;

// Expected: the first numbers of Vigna's splitmix64.c from state 0.
TEST(MixBits, IsTheFinaliserOfSplitMix64) {
  EXPECT_EQ(mix_bits(kGolden), 0xe220a8397b1dcdafu);
  EXPECT_EQ(mix_bits(2 * kGolden), 0x6e789e6aa1b965f4u);
  EXPECT_EQ(mix_bits(3 * kGolden), 0x06c45d188009454fu);
}

// Packs of the same seed must stay equal: these numbers never change.
TEST(RandomBits, KeepTheirValues) {
  EXPECT_EQ(random_bits(0, Purpose::pack_order, 0), 0x0def3e785d2a8315fu);
  EXPECT_EQ(random_bits(0, Purpose::split, 0), 0x0169f8f9614ff197u);
  EXPECT_EQ(random_bits(7, Purpose::pack_order, 123456789), 0xbbea65500cc0c44fu);
  EXPECT_EQ(random_bits(UINT64_MAX, Purpose::split, UINT64_MAX), 0x5a4d709acbb24795u);
}

TEST(RandomBits, ChangeHalfOfThemselvesWithAnyInputBit) {
  double changed = 0;
  for (std::uint64_t index = 0; index < 200; ++index)
    for (int bit = 0; bit < 64; ++bit) {
      const std::uint64_t before = random_bits(index, Purpose::split, index);
      const std::uint64_t flip = std::uint64_t{1} << bit;
      changed += std::popcount(before ^ random_bits(index ^ flip, Purpose::split, index));
      changed += std::popcount(before ^ random_bits(index, Purpose::split, index ^ flip));
    }
  EXPECT_NEAR(changed / (200 * 64 * 2), 32, 0.2);
}

TEST(RandomBits, AreNotSharedByPurposesSeedsOrIndices) {
  std::set<std::uint64_t> seen;
  for (std::uint64_t seed = 0; seed < 30; ++seed)
    for (std::uint64_t index = 0; index < 30; ++index)
      for (const Purpose purpose : {Purpose::pack_order, Purpose::split})
        seen.insert(random_bits(seed, purpose, index));
  EXPECT_EQ(seen.size(), 30u * 30 * 2);
}

TEST(RandomBelow, IsEvenlySpread) {
  constexpr std::uint64_t kDraws = 70'000;
  std::array<std::uint64_t, 7> counts{};
  for (std::uint64_t index = 0; index < kDraws; ++index)
    ++counts[random_below(counts.size(), 3, Purpose::pack_order, index)];
  double chi_square = 0;
  constexpr double kExpected = static_cast<double>(kDraws) / 7;
  for (const std::uint64_t count : counts) {
    const double off = static_cast<double>(count) - kExpected;
    chi_square += off * off / kExpected;
  }
  EXPECT_LT(chi_square, 22.5);  // 6 degrees of freedom: 0.1 % of honest draws exceed it
}

TEST(RandomBelow, StaysBelowAnyCount) {
  for (const std::uint64_t count : {std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{1} << 40, UINT64_MAX})
    for (std::uint64_t index = 0; index < 1000; ++index)
      ASSERT_LT(random_below(count, 1, Purpose::split, index), count);
}

std::vector<int> shuffled(int count, std::uint64_t seed, Purpose purpose = Purpose::pack_order) {
  std::vector<int> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), 0);
  shuffle(std::span(values), seed, purpose);
  return values;
}

// Expected: the same arithmetic in Python's integers.
TEST(Shuffle, KeepsItsOrder) {
  EXPECT_EQ(shuffled(10, 42), (std::vector<int>{0, 9, 4, 2, 5, 6, 8, 1, 3, 7}));
}

TEST(Shuffle, IsAPermutationThatDependsOnSeedAndPurpose) {
  std::vector<int> sorted = shuffled(1000, 1);
  EXPECT_NE(sorted, shuffled(1000, 2));
  EXPECT_NE(sorted, shuffled(1000, 1, Purpose::split));
  std::sort(sorted.begin(), sorted.end());
  for (int value = 0; value < 1000; ++value) ASSERT_EQ(sorted[static_cast<std::size_t>(value)], value);
  EXPECT_EQ(shuffled(0, 1).size(), 0u);
  EXPECT_EQ(shuffled(1, 1), std::vector<int>{0});
}

TEST(Shuffle, GivesEachOrderOfThreeEquallyOften) {
  constexpr int kDraws = 60'000;
  std::array<int, 27> counts{};
  for (int seed = 0; seed < kDraws; ++seed) {
    const std::vector<int> order = shuffled(3, static_cast<std::uint64_t>(seed));
    ++counts[static_cast<std::size_t>(order[0] * 9 + order[1] * 3 + order[2])];
  }
  int orders = 0;
  for (const int count : counts) {
    if (count == 0) continue;
    ++orders;
    EXPECT_NEAR(count, kDraws / 6, 400);  // more than four standard deviations
  }
  EXPECT_EQ(orders, 6);
}

}  // namespace
}  // namespace chunkhit
