#include "transform/row_mix.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/random.h"
#include "support/simd_targets.h"

namespace chunkhit {
namespace {

std::vector<std::uint8_t> random_bytes(std::size_t count) {
  std::vector<std::uint8_t> bytes(count);
  for (std::size_t i = 0; i < count; ++i)
    bytes[i] = static_cast<std::uint8_t>(random_bits(1, Purpose::pack_order, i));
  return bytes;
}

// Pillow's loop, byte by byte.
std::uint8_t mixed_byte(const AxisWeights& axis, std::size_t out_row, const std::uint8_t* column,
                        std::size_t row_bytes) {
  std::int64_t sum = 1 << (kWeightBits - 1);
  for (std::uint32_t tap = 0; tap < axis.count[out_row]; ++tap)
    sum += std::int64_t{column[(axis.first[out_row] + tap) * row_bytes]} *
           axis.weights[out_row * axis.stride + tap];
  return static_cast<std::uint8_t>(std::clamp<std::int64_t>(sum >> kWeightBits, 0, 255));
}

TEST(RowMix, GivesTheSameBytesOnEveryInstructionSet) {
  constexpr std::size_t kRowBytes = 150;
  const std::vector<std::uint8_t> rows = random_bytes(kRowBytes * 40);
  for (const Filter filter : {Filter::box, Filter::bilinear, Filter::lanczos}) {  // 3, 5 and 15 rows
    const AxisWeights axis = axis_weights(filter, {40, 40.0f, 17, 0, 17});
    for_each_simd_target([&](const char* target) {
      for (const std::size_t length :
           {1u, 3u, 15u, 16u, 17u, 31u, 32u, 33u, 48u, 63u, 64u, 65u, 96u, 127u, 128u, 149u}) {
        std::vector<std::uint8_t> out(17 * length);
        mix_rows(axis, rows.data(), kRowBytes, length, out.data(), length);
        for (std::size_t i = 0; i < out.size(); ++i)
          ASSERT_EQ(out[i], mixed_byte(axis, i / length, rows.data() + i % length, kRowBytes))
              << target << ", " << length << " bytes a row, byte " << i;
      }
    });
  }
}

TEST(RowMix, MixesManyRowsIntoOne) {
  constexpr std::uint32_t kRows = 1 << 17;
  const std::vector<std::uint8_t> rows(std::size_t{kRows} * 64, 251);
  const AxisWeights axis = axis_weights(Filter::bilinear, {kRows, kRows, 1, 0, 1});
  for_each_simd_target([&](const char* target) {
    std::vector<std::uint8_t> out(64);
    mix_rows(axis, rows.data(), 64, 64, out.data(), 64);
    for (std::size_t i = 0; i < out.size(); ++i)
      ASSERT_EQ(out[i], mixed_byte(axis, 0, rows.data() + i, 64)) << target;
  });
}

TEST(RowMix, ClampsWhatNegativeWeightsOvershoot) {
  std::vector<std::uint8_t> rows(8 * 64, 0);
  std::fill(rows.begin() + 4 * 64, rows.end(), std::uint8_t{255});
  const AxisWeights axis = axis_weights(Filter::lanczos, {8, 8.0f, 32, 0, 32});
  for_each_simd_target([&](const char* target) {
    std::vector<std::uint8_t> out(32 * 64);
    mix_rows(axis, rows.data(), 64, 64, out.data(), 64);
    for (const std::size_t out_row : {13u, 18u})
      EXPECT_EQ(out[out_row * 64], mixed_byte(axis, out_row, rows.data(), 64)) << target;
    EXPECT_EQ(out[13 * 64], 0) << target;
    EXPECT_EQ(out[18 * 64], 255) << target;
  });
}

TEST(RowMix, WritesNothingBeyondItsRows) {
  const std::vector<std::uint8_t> rows = random_bytes(10 * 37);
  const AxisWeights axis = axis_weights(Filter::bilinear, {10, 10.0f, 4, 0, 4});
  for_each_simd_target([&](const char* target) {
    std::vector<std::uint8_t> out(4 * 50, 7);
    mix_rows(axis, rows.data(), 37, 37, out.data(), 50);
    for (std::size_t i = 0; i < out.size(); ++i)
      ASSERT_EQ(i % 50 >= 37 ? out[i] : 7, 7) << target << ", byte " << i;
  });
}

}  // namespace
}  // namespace chunkhit
