#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/half_float.h"
#include "batch/sparse_values.h"
#include "support/stored_rows.h"

namespace chunkhit {
namespace {

using U8Row = RowBytes<std::uint16_t, std::uint8_t>;

std::vector<float> values_of(const StoredRow& row, const EntryFormat& format) {
  std::vector<float> values(row.nnz);
  EntryValues(format).calculate(row, values);
  return values;
}

TEST(EntryValues, AreStoredNumbersTimesThePacksScale) {
  const U8Row row({1, 5, 9}, {1, 7, 10});
  EXPECT_EQ(values_of(row.row(), {2, ValueType::u8, 0.5}), (std::vector<float>{0.5f, 3.5f, 5}));
  // 3 · 0.1 is rounded once, from double.
  EXPECT_EQ(values_of(U8Row({0}, {3}).row(), {2, ValueType::u8, 0.1}), (std::vector<float>{0.3f}));
}

TEST(EntryValues, AreReadInEveryStoredType) {
  const RowBytes<std::uint32_t, std::uint16_t> counts({1, 70000}, {3, 65535});
  EXPECT_EQ(values_of(counts.row(), {4, ValueType::u16, 1}), (std::vector<float>{3, 65535}));
  const RowBytes<std::uint32_t, float> floats({1, 2}, {-1.25f, 1e30f});
  EXPECT_EQ(values_of(floats.row(), {4, ValueType::f32, 1}), (std::vector<float>{-1.25f, 1e30f}));
  const RowBytes<std::uint32_t, float> nothing({1, 2}, {});
  EXPECT_EQ(values_of(nothing.row(), {4, ValueType::none, 1}), (std::vector<float>{1, 1}));
}

TEST(EntryValues, AreScaledAfterTheyAreBinarized) {
  const U8Row row({1, 5}, {1, 7});
  EXPECT_EQ(values_of(row.row(), {2, ValueType::u8, 0.5, true, 3}), (std::vector<float>{3, 3}));
  EXPECT_EQ(values_of(row.row(), {2, ValueType::u8, 0.5, false, 4}), (std::vector<float>{2, 14}));
}

TEST(EntryValues, AreDividedByTheRowsNorm) {
  const RowBytes<std::uint32_t, float> row({1, 2}, {-3, 4});
  EXPECT_EQ(values_of(row.row(), {4, ValueType::f32, 1, false, 1, RowNorm::l2}),
            (std::vector<float>{-3.0f / 5, 4.0f / 5}));
  EXPECT_EQ(values_of(row.row(), {4, ValueType::f32, 1, false, 1, RowNorm::l1}),
            (std::vector<float>{-3.0f / 7, 4.0f / 7}));
  const RowBytes<std::uint32_t, float> zeros({1, 2}, {0, 0});
  EXPECT_EQ(values_of(zeros.row(), {4, ValueType::f32, 1, false, 1, RowNorm::l2}),
            (std::vector<float>{0, 0}));
}

// Every half float, as its value in double.
double value_of(std::uint16_t half) {
  const int exponent = half >> 10 & 31;
  const int mantissa = half & 1023;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return half & 0x8000 ? -magnitude : magnitude;
}

TEST(HalfFloat, RoundsToTheNearestTiesToEven) {
  for (std::uint16_t half = 0; half < 0x7bff; ++half) {
    const double low = value_of(half), high = value_of(half + 1);
    const auto middle = static_cast<float>((low + high) / 2);
    ASSERT_EQ(half_float(static_cast<float>(low)), half);
    ASSERT_EQ(half_float(-static_cast<float>(low)), half | 0x8000);
    ASSERT_EQ(half_float(middle), half % 2 == 0 ? half : half + 1) << half;
    ASSERT_EQ(half_float(std::nextafter(middle, 0.0f)), half) << half;
    ASSERT_EQ(half_float(std::nextafter(middle, 1e9f)), half + 1) << half;
  }
}

TEST(HalfFloat, KeepsInfinityAndNan) {
  EXPECT_EQ(half_float(65519.99f), 0x7bff);
  EXPECT_EQ(half_float(65520), 0x7c00);
  EXPECT_EQ(half_float(-std::numeric_limits<float>::infinity()), 0xfc00);
  const std::uint16_t nan = half_float(std::numeric_limits<float>::quiet_NaN());
  EXPECT_EQ(nan & 0x7c00, 0x7c00);
  EXPECT_NE(nan & 0x3ff, 0);
}

}  // namespace
}  // namespace chunkhit
