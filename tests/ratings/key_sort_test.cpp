#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "ratings/rating_store.h"

namespace chunkhit {
namespace {

TEST(KeySort, SortsByTheUpperHalfAndLeavesEqualOnesInTheirOrder) {
  std::mt19937_64 random(1);
  KeySort sorter;
  for (const std::size_t count : {0u, 1u, 2u, 63u, 64u, 65u, 300u, 5000u})
    for (const std::uint64_t range : {1ull, 3ull, 200ull, 70'000ull, 1ull << 32}) {
      std::vector<std::uint64_t> keys(count);
      for (std::size_t at = 0; at < count; ++at) keys[at] = (random() % range) << 32 | (count - at);
      std::vector<std::uint64_t> expected = keys;
      std::stable_sort(expected.begin(), expected.end(),
                       [](std::uint64_t a, std::uint64_t b) { return a >> 32 < b >> 32; });
      sorter.sort(keys);
      EXPECT_EQ(keys, expected) << count << " keys below " << range;
    }
}

}  // namespace
}  // namespace chunkhit
