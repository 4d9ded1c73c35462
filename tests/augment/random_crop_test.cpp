#include "augment/random_crop.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <utility>

namespace chunkhit {
namespace {

constexpr SampleShape kImage{5, 7, 3, Layout::nhwc};
constexpr AugmentSpec kRandomCrop{0.5, 3, 5, true, 1};  // 25 positions in the padded image of 7 x 9

// Four standard deviations of how often something of this chance happens.
double allowed(double tries, double chance) { return 4 * std::sqrt(tries * chance * (1 - chance)); }

bool same(const Crop& a, const Crop& b) {
  return a.top == b.top && a.left == b.left && a.flipped == b.flipped;
}

TEST(RandomCrop, FlipsTheShareThatWasAskedFor) {
  constexpr int kTries = 20000;
  for (const double share : {0.0, 0.1, 0.5, 1.0}) {
    const RandomCrop random_crop(kImage, {share, 0, 0, false, 0});
    int flipped = 0;
    for (std::uint64_t sample = 0; sample < kTries; ++sample)
      flipped += random_crop({3, 2, sample, 0}).flipped ? 1 : 0;
    EXPECT_NEAR(flipped, kTries * share, allowed(kTries, share)) << share;
  }
}

TEST(RandomCrop, ChoosesEveryPlaceEquallyOftenFlippedOrNot) {
  constexpr int kTries = 50000, kCaches = 25;
  const RandomCrop random_crop(kImage, kRandomCrop);
  std::map<std::pair<std::int64_t, std::int64_t>, int> counts, flipped;
  for (std::uint64_t sample = 0; sample < kTries; ++sample) {
    const Crop cut = random_crop({11, 0, sample, 0});
    ++counts[{cut.top, cut.left}];
    if (cut.flipped) ++flipped[{cut.top, cut.left}];
  }
  ASSERT_EQ(counts.size(), kCaches);
  for (std::int64_t top = -1; top <= 3; ++top)
    for (std::int64_t left = -1; left <= 3; ++left) {
      EXPECT_NEAR((counts[{top, left}]), kTries / kCaches, allowed(kTries, 1.0 / kCaches))
          << top << ", " << left;
      EXPECT_NEAR((flipped[{top, left}]), kTries / kCaches / 2, allowed(kTries, 0.5 / kCaches))
          << top << ", " << left;
    }
}

TEST(RandomCrop, ChangesWithSeedEpochSampleAndPassAndNothingElse) {
  const RandomCrop random_crop(kImage, kRandomCrop), again(kImage, kRandomCrop);
  int by_seed = 0, by_epoch = 0, by_pass = 0, by_sample = 0;
  for (std::uint64_t sample = 0; sample < 1000; ++sample) {
    const Crop cut = random_crop({1, 2, sample, 3});
    ASSERT_TRUE(same(cut, again({1, 2, sample, 3})));
    by_seed += same(cut, random_crop({2, 2, sample, 3})) ? 1 : 0;
    by_epoch += same(cut, random_crop({1, 3, sample, 3})) ? 1 : 0;
    by_pass += same(cut, random_crop({1, 2, sample, 4})) ? 1 : 0;
    by_sample += same(cut, random_crop({1, 2, sample + 1, 3})) ? 1 : 0;
  }
  // One of 50 cuts is the same by chance.
  for (const int count : {by_seed, by_epoch, by_pass, by_sample}) EXPECT_NEAR(count, 20, 18);
}

TEST(RandomCrop, StaysAsItWasInEarlierVersions) {
  const RandomCrop random_crop({224, 224, 3, Layout::nhwc}, {0.5, 200, 201, true, 4});
  EXPECT_TRUE(same(random_crop({0, 0, 0, 0}), {27, 9, true}));
  EXPECT_TRUE(same(random_crop({7, 3, 123456, 1}), {1, -4, true}));
  EXPECT_TRUE(same(random_crop({7, 3, 123457, 1}), {23, -1, false}));
}

TEST(RandomCrop, CentresWhereTorchvisionDoes) {
  // round((side - crop) / 2), halves to the even number.
  const auto top = [](std::uint32_t side, std::uint32_t crop, std::uint32_t padding) {
    return RandomCrop({side, 1, 1, Layout::nhwc}, {0, crop, 1, false, padding})({}).top;
  };
  EXPECT_EQ(top(10, 4, 0), 3);
  EXPECT_EQ(top(10, 5, 0), 2);
  EXPECT_EQ(top(10, 3, 0), 4);
  EXPECT_EQ(top(10, 9, 0), 0);
  EXPECT_EQ(top(10, 13, 2), -2);
  EXPECT_EQ(top(10, 11, 2), 0);
  // Where the crop is larger it pads (crop - side) / 2 rows above, which was an error.
  EXPECT_EQ(top(10, 14, 0), -2);
  EXPECT_EQ(top(10, 15, 0), -2);
  EXPECT_EQ(top(10, 11, 0), 0);
  EXPECT_FALSE(RandomCrop({10, 1, 1, Layout::nhwc}, {0, 11, 1, false, 0}).keeps_all());
}

}  // namespace
}  // namespace chunkhit
