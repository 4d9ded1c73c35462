#include "transform/axis_weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>
#include <vector>

namespace chunkhit {
namespace {

constexpr std::array kMixingFilters{Filter::bilinear, Filter::bicubic, Filter::lanczos, Filter::box,
                                    Filter::hamming};

AxisRequest whole_axis(std::uint32_t source_length, std::uint32_t out_length) {
  return {source_length, static_cast<float>(source_length), out_length, 0, out_length};
}

// Pixels that a JPEG's shrinking covers partly lie at the far side of the stored image, which is the near
// side of one that is turned.
TEST(AxisWeights, OfABoxAtTheFarSideMirrorThoseOfOneAtTheNearSide) {
  for (const Filter filter : kMixingFilters) {
    if (filter == Filter::box) continue;  // its edges fall on halves here, which round to one side
    const AxisWeights near = axis_weights(filter, {13, 12.25f, 7, 0, 7});
    const AxisWeights far = axis_weights(filter, {13, 12.25f, 7, 0, 7, 0.75f});
    for (std::size_t i = 0; i < 7; ++i) {
      EXPECT_EQ(far.first[i] + far.count[i], 13 - near.first[6 - i]);
      EXPECT_NEAR(far.weights[i * far.stride], near.weights[(6 - i) * near.stride + near.count[6 - i] - 1],
                  2);
    }
  }
}

TEST(AxisWeights, SumToOneUpToTheRoundingOfEach) {
  for (const Filter filter : kMixingFilters) {
    for (const std::uint32_t out_length : {1u, 3u, 31u, 100u, 257u}) {
      const AxisWeights axis = axis_weights(filter, whole_axis(99, out_length));
      for (std::size_t i = 0; i < axis.size(); ++i) {
        const auto begin = axis.weights.begin() + static_cast<std::ptrdiff_t>(i * axis.stride);
        const std::int64_t sum = std::accumulate(begin, begin + axis.stride, std::int64_t{0});
        EXPECT_LE(std::llabs(sum - (1 << kWeightBits)), axis.count[i])
            << out_length << " pixels, number " << i;
      }
    }
  }
}

TEST(AxisWeights, HalveTwoPixelsByBox) {
  const AxisWeights axis = axis_weights(Filter::box, whole_axis(4, 2));
  EXPECT_EQ(axis.first, (std::vector<std::uint32_t>{0, 2}));
  EXPECT_EQ(axis.count, (std::vector<std::uint32_t>{2, 2}));
  constexpr std::int32_t kHalf = 1 << (kWeightBits - 1);
  EXPECT_EQ(axis.weights, (std::vector<std::int32_t>{kHalf, kHalf, 0, 0, kHalf, kHalf, 0, 0}));
}

TEST(AxisWeights, StayInsideTheSource) {
  for (const Filter filter : kMixingFilters) {
    for (const std::uint32_t source_length : {1u, 2u, 7u, 64u}) {
      for (std::uint32_t out_length = 1; out_length < 70; ++out_length) {
        if (out_length == source_length) continue;
        const AxisWeights axis = axis_weights(filter, whole_axis(source_length, out_length));
        for (std::size_t i = 0; i < axis.size(); ++i) {
          ASSERT_GE(axis.count[i], 1u);
          ASSERT_LE(axis.first[i] + axis.count[i], source_length);
        }
      }
    }
  }
}

TEST(AxisWeights, OfAWindowAreASliceOfTheWhole) {
  for (const Filter filter : {Filter::bilinear, Filter::lanczos, Filter::nearest}) {
    const AxisWeights whole = axis_weights(filter, {512, 510.5f, 341, 0, 341});
    const AxisWeights window = axis_weights(filter, {512, 510.5f, 341, 58, 224});
    for (std::size_t i = 0; i < 224; ++i) {
      ASSERT_EQ(window.first[i], whole.first[58 + i]);
      ASSERT_EQ(window.count[i], whole.count[58 + i]);
      for (std::uint32_t tap = 0; tap < window.count[i] && !window.copies; ++tap)
        ASSERT_EQ(window.weights[i * window.stride + tap], whole.weights[(58 + i) * whole.stride + tap]);
    }
  }
}

TEST(AxisWeights, SplitIntoHalvesThatMakeThemUp) {
  const AxisWeights axis = axis_weights(Filter::lanczos, whole_axis(200, 77));
  ASSERT_EQ(axis.pairs.size() * 2, axis.weights.size());
  for (std::size_t i = 0; i < axis.weights.size(); ++i) {
    const WeightPair& pair = axis.pairs[i / 2];
    ASSERT_EQ(pair.high[i % 2] * 65536 + pair.low[i % 2], axis.weights[i]);
  }
}

TEST(AxisWeights, SplitIntoDigitsThatMakeThemUp) {
  const AxisWeights axis = axis_weights(Filter::lanczos, whole_axis(200, 77));
  ASSERT_EQ(axis.digits.size() * 4, axis.weights.size());
  for (std::size_t i = 0; i < axis.weights.size(); ++i) {
    const auto& digits = axis.digits[i / 4].digits;
    ASSERT_EQ(digits[0][i % 4] * 65536 + digits[1][i % 4] * 256 + digits[2][i % 4], axis.weights[i]);
  }
}

TEST(AxisWeights, DoNotDependOnWhatTheirMemoryHeld) {
  AxisWeights used = axis_weights(Filter::lanczos, whole_axis(900, 31));
  for (const AxisRequest& request : {whole_axis(20, 31), whole_axis(31, 31), whole_axis(100, 7)}) {
    compute_weights(Filter::bicubic, request, used);
    const AxisWeights fresh = axis_weights(Filter::bicubic, request);
    EXPECT_EQ(used.copies, fresh.copies);
    EXPECT_EQ(used.first, fresh.first);
    EXPECT_EQ(used.count, fresh.count);
    EXPECT_TRUE(fresh.copies || used.weights == fresh.weights);
  }
}

TEST(AxisWeights, OfAFlippedWindowAreInReverseOrder) {
  const AxisWeights plain = axis_weights(Filter::hamming, {90, 80.5f, 61, 9, 40, 3.25f});
  const AxisWeights flipped = axis_weights(Filter::hamming, {90, 80.5f, 61, 9, 40, 3.25f, true});
  for (std::size_t i = 0; i < 40; ++i) {
    ASSERT_EQ(flipped.first[i], plain.first[39 - i]);
    ASSERT_EQ(flipped.count[i], plain.count[39 - i]);
    for (std::uint32_t tap = 0; tap < plain.stride; ++tap)
      ASSERT_EQ(flipped.weights[i * plain.stride + tap], plain.weights[(39 - i) * plain.stride + tap]);
  }
}

// Else the sums of row_mix would not fit.
TEST(AxisWeights, AddUpToLessThanTwoWithoutTheirSigns) {
  for (const Filter filter : kMixingFilters)
    for (const std::uint32_t out_length : {1, 3, 50, 99, 101, 163, 777}) {
      const AxisWeights axis = axis_weights(filter, whole_axis(100, out_length));
      for (std::size_t i = 0; i < axis.size(); ++i) {
        std::int64_t sum = 0;
        for (std::uint32_t tap = 0; tap < axis.count[i]; ++tap)
          sum += std::abs(axis.weights[i * axis.stride + tap]);
        ASSERT_LT(sum, 2 << kWeightBits);
      }
    }
}

TEST(AxisWeights, CopyAnUnchangedAxis) {
  for (const Filter filter : kMixingFilters) {
    const AxisWeights axis = axis_weights(filter, {50, 50.0f, 50, 20, 3});
    EXPECT_TRUE(axis.copies);
    EXPECT_EQ(axis.first, (std::vector<std::uint32_t>{20, 21, 22}));
  }
}

TEST(AxisWeights, PickTheNearestPixels) {
  const AxisWeights axis = axis_weights(Filter::nearest, whole_axis(10, 4));
  EXPECT_TRUE(axis.copies);
  EXPECT_EQ(axis.first, (std::vector<std::uint32_t>{1, 3, 6, 8}));
}

TEST(AxisSpan, CoversWhatTheWeightsUseAndNoMore) {
  for (const Filter filter : {Filter::bilinear, Filter::bicubic, Filter::box, Filter::nearest}) {
    for (const std::uint32_t out_length : {30u, 99u, 100u, 260u}) {
      const AxisRequest request{100, 99.5f, out_length, 7, 11};
      const AxisWeights axis = axis_weights(filter, request);
      std::uint32_t begin = 100, end = 0;
      for (std::size_t i = 0; i < axis.size(); ++i) {
        begin = std::min(begin, axis.first[i]);
        end = std::max(end, axis.first[i] + axis.count[i]);
      }
      const AxisSpan span = axis_span(filter, request);
      EXPECT_EQ(span.first, begin);
      EXPECT_EQ(span.first + span.count, end);
    }
  }
}

}  // namespace
}  // namespace chunkhit
