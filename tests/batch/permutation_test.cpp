#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "batch/epoch_order.h"

namespace chunkhit {
namespace {

std::vector<std::uint64_t> all_of(const Permutation& permutation) {
  std::vector<std::uint64_t> positions(permutation.count());
  for (std::uint64_t index = 0; index < permutation.count(); ++index) positions[index] = permutation(index);
  return positions;
}

/// How many standard deviations chi-square lies above its mean, when each of the counted kinds is equally
/// likely.
double excess_of(const std::vector<std::uint64_t>& counts, std::uint64_t draws, std::size_t kinds) {
  const double expected = static_cast<double>(draws) / static_cast<double>(kinds);
  double sum = 0;
  for (const std::uint64_t count : counts)
    if (count != 0) sum += std::pow(static_cast<double>(count) - expected, 2) / expected;
  const auto unseen =
      static_cast<double>(kinds) -
      static_cast<double>(std::count_if(counts.begin(), counts.end(), [](auto n) { return n != 0; }));
  const double freedom = static_cast<double>(kinds) - 1;
  return (sum + unseen * expected - freedom) / std::sqrt(2 * freedom);
}

TEST(Permutation, HitsEveryPlaceOnceAndInvertsItself) {
  std::vector<std::uint64_t> counts;
  for (std::uint64_t count = 1; count <= 70; ++count) counts.push_back(count);
  for (const std::uint64_t power : {128u, 256u, 1024u, 4096u, 65'536u})
    for (const std::uint64_t count : {power - 1, power, power + 1}) counts.push_back(count);
  counts.push_back(100'003);
  for (const std::uint64_t count : counts)
    for (const std::uint64_t key : {std::uint64_t{0}, std::uint64_t{1}, ~std::uint64_t{0}}) {
      const Permutation permutation(count, key);
      std::vector<std::uint64_t> positions = all_of(permutation);
      for (std::uint64_t index = 0; index < count; ++index)
        ASSERT_EQ(permutation.inverse(positions[index]), index) << count << " " << key;
      std::sort(positions.begin(), positions.end());
      for (std::uint64_t index = 0; index < count; ++index)
        ASSERT_EQ(positions[index], index) << count << " " << key;
    }
}

TEST(Permutation, InvertsItselfOverMoreThanMemoryHolds) {
  for (const std::uint64_t count :
       {(std::uint64_t{1} << 32) - 1, std::uint64_t{1} << 33, std::uint64_t{1} << 63,
        (std::uint64_t{1} << 63) + 1, ~std::uint64_t{0}}) {
    const Permutation permutation(count, 7);
    for (std::uint64_t i = 0; i < 10'000; ++i) {
      const std::uint64_t index = i % 2 == 0 ? i : count - i;
      const std::uint64_t position = permutation(index);
      ASSERT_LT(position, count);
      ASSERT_EQ(permutation.inverse(position), index) << count;
    }
  }
}

// The order of an epoch is a format: these positions are for ever. Expected: tests/batch/order_test.py's
// arithmetic.
TEST(Permutation, KeepsItsPlaces) {
  EXPECT_EQ(all_of(Permutation(10, 42)), (std::vector<std::uint64_t>{6, 8, 3, 1, 9, 5, 7, 0, 2, 4}));
  EXPECT_EQ(all_of(Permutation(3, 0)), (std::vector<std::uint64_t>{2, 1, 0}));
  const Permutation large(1'000'003, 7);
  EXPECT_EQ((std::vector<std::uint64_t>{large(0), large(1), large(2), large(1'000'002)}),
            (std::vector<std::uint64_t>{850713, 583423, 5893, 172369}));
  EXPECT_EQ(Permutation(std::uint64_t{1} << 33, 7)(0), 41628231u);
}

TEST(Permutation, GivesEachPermutationOfFewEquallyOften) {
  for (const std::uint64_t count : {2u, 3u, 4u, 5u, 6u}) {
    constexpr std::uint64_t kKeys = 100'000;
    std::vector<std::uint64_t> seen(46'656);  // 6^6 numbers of `count` digits
    for (std::uint64_t key = 0; key < kKeys; ++key) {
      std::uint64_t digits = 0;
      for (const std::uint64_t position : all_of(Permutation(count, key))) digits = digits * count + position;
      ++seen[digits];
    }
    const auto kinds = static_cast<std::size_t>(std::lround(std::tgamma(static_cast<double>(count) + 1)));
    EXPECT_LT(std::abs(excess_of(seen, kKeys, kinds)), 4) << count;
  }
}

TEST(Permutation, SendsTwoNeighborsToEachPairOfPlacesEquallyOften) {
  for (const std::uint64_t count : {17u, 64u, 65u, 257u}) {
    constexpr std::uint64_t kKeys = 300'000;
    std::vector<std::uint64_t> seen(count * count);
    for (std::uint64_t key = 0; key < kKeys; ++key) {
      const Permutation permutation(count, key);
      ++seen[permutation(count / 2) * count + permutation(count / 2 + 1)];
    }
    EXPECT_LT(std::abs(excess_of(seen, kKeys, count * (count - 1))), 4) << count;
  }
}

TEST(Permutation, SendsAnIndexToEachPlaceEquallyOftenOverKeys) {
  constexpr std::uint64_t kCount = 6'400;
  constexpr std::uint64_t kKeys = 128'000;
  for (const std::uint64_t index : {std::uint64_t{0}, std::uint64_t{3'333}, kCount - 1}) {
    std::vector<std::uint64_t> seen(kCount);
    for (std::uint64_t key = 0; key < kKeys; ++key) ++seen[Permutation(kCount, key)(index)];
    EXPECT_LT(std::abs(excess_of(seen, kKeys, kCount)), 4) << index;
  }
}

// The gap between the positions of neighbours, of two uniform positions, is below x · count with probability
// 1 - (1
// - x)^2.
TEST(Permutation, LeavesGapsBetweenNeighborsAsChanceDoes) {
  constexpr std::uint64_t kCount = 1'000'003;
  constexpr std::size_t kBins = 100;
  const Permutation permutation(kCount, 11);
  std::vector<double> seen(kBins);
  std::uint64_t before = permutation(0);
  for (std::uint64_t index = 1; index < kCount; ++index) {
    const std::uint64_t position = permutation(index);
    ++seen[(position > before ? position - before : before - position) * kBins / kCount];
    before = position;
  }
  double sum = 0;
  for (std::size_t bin = 0; bin < kBins; ++bin) {
    const double low = 1 - static_cast<double>(bin) / kBins;
    const double high = 1 - static_cast<double>(bin + 1) / kBins;
    const double expected = (low * low - high * high) * (kCount - 1);
    sum += (seen[bin] - expected) * (seen[bin] - expected) / expected;
  }
  EXPECT_LT(std::abs(sum - (kBins - 1)) / std::sqrt(2.0 * (kBins - 1)), 4);
}

// A random permutation has 1 fixed point on average, and two of them agree at 1 index on average; variance 1
// each.
TEST(Permutation, OfTwoKeysIsUnrelated) {
  constexpr std::uint64_t kCount = 5'000;
  constexpr std::uint64_t kKeys = 400;
  std::uint64_t fixed = 0;
  std::uint64_t agreed = 0;
  for (std::uint64_t key = 0; key < kKeys; ++key) {
    const Permutation one(kCount, key);
    const Permutation other(kCount, key + 1);
    for (std::uint64_t index = 0; index < kCount; ++index) {
      const std::uint64_t position = one(index);
      fixed += position == index ? 1 : 0;
      agreed += position == other(index) ? 1 : 0;
    }
  }
  EXPECT_NEAR(static_cast<double>(fixed), kKeys, 4 * std::sqrt(kKeys));
  EXPECT_NEAR(static_cast<double>(agreed), kKeys, 4 * std::sqrt(kKeys));
}

}  // namespace
}  // namespace chunkhit
