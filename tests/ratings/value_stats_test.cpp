#include <gtest/gtest.h>

#include <limits>
#include <sstream>
#include <string>

#include "ratings/rating_packs.h"
#include "types/enum_names.h"

namespace chunkhit {
namespace {

ValueStats stats_of(const std::vector<float>& values) {
  ValueStats stats;
  for (const float value : values) stats.add(value);
  return stats;
}

std::string stored(const std::vector<float>& values) {
  const StoredValues chosen = stats_of(values).fit().stored();
  return name_of(chosen.type) + " " + std::to_string(chosen.scale).substr(0, 5);
}

TEST(StoredValues, TakeTheSmallestTypeAndTheLargestScaleThatLoseNothing) {
  EXPECT_EQ(stored({1, 1}), "none 1.000");
  EXPECT_EQ(stored({1, 2}), "u8 1.000");
  EXPECT_EQ(stored({0, 255}), "u8 1.000");
  EXPECT_EQ(stored({0, 256}), "u16 1.000");
  EXPECT_EQ(stored({65'535}), "u16 1.000");
  EXPECT_EQ(stored({65'536}), "f32 1.000");
  EXPECT_EQ(stored({0.5F, 5}), "u8 0.500");
  EXPECT_EQ(stored({0.5F, 0.25F}), "u8 0.250");
  EXPECT_EQ(stored({0.2F, 1}), "u8 0.200");
  EXPECT_EQ(stored({0.3F, 4.1F}), "u8 0.100");
  EXPECT_EQ(stored({0.25F, 0.1F}), "u8 0.050");
  EXPECT_EQ(stored({3.14F, 2.71F}), "u16 0.010");
  EXPECT_EQ(stored({0.001F, 65.535F}), "u16 0.001");
  EXPECT_EQ(stored({1.0F / 3}), "f32 1.000");
  EXPECT_EQ(stored({-1, 1}), "f32 1.000");
  EXPECT_EQ(stored({-0.0F, 2}), "u8 1.000");
  EXPECT_EQ(stored({std::numeric_limits<float>::max()}), "f32 1.000");
  EXPECT_EQ(stored({std::numeric_limits<float>::denorm_min()}), "f32 1.000");
}

TEST(StoredValues, GiveEveryDecimalBackExactly) {
  for (int number = 0; number <= 65'535; number += 7) {
    const float value =
        std::stof(std::to_string(number / 1000) + "." + std::to_string(1000 + number % 1000).substr(1));
    ASSERT_NE(stats_of({value}).fit().stored().type, ValueType::f32) << value;
  }
}

TEST(ValueHistogram, CountsEachValue) {
  const ValueHistogram histogram = stats_of({0.5F, 5, 0.5F, -2, 0.0F, -0.0F}).histogram();
  EXPECT_FALSE(histogram.has_ranges);
  std::string text;
  for (const ValueHistogram::Bin& bin : histogram.bins)
    text += std::to_string(bin.low).substr(0, 4) + ":" + std::to_string(bin.count) + " ";
  EXPECT_EQ(text, "-2.0:1 0.00:2 0.50:2 5.00:1 ");
}

TEST(ValueHistogram, CountsRangesWhereThereAreMoreThanAThousandValues) {
  ValueStats stats;
  for (int value = 1; value <= 1000; ++value) stats.add(static_cast<float>(value));
  EXPECT_FALSE(stats.histogram().has_ranges);
  stats.add(-3);
  const ValueHistogram histogram = stats.histogram();
  EXPECT_TRUE(histogram.has_ranges);
  ASSERT_EQ(histogram.bins.size(), 11u);  // [-4, -2), [1, 2), [2, 4) ... [512, 1024)
  EXPECT_EQ(histogram.bins[0].low, -4);
  EXPECT_EQ(histogram.bins[0].high, -2);
  EXPECT_EQ(histogram.bins[0].count, 1u);
  EXPECT_EQ(histogram.bins[10].low, 512);
  EXPECT_EQ(histogram.bins[10].high, 1024);
  EXPECT_EQ(histogram.bins[10].count, 489u);
}

/// What one object knows, as text.
std::string text_of(const ValueStats& stats) {
  const StoredValues stored = stats.fit().stored();
  std::ostringstream text;
  text << static_cast<int>(stored.type) << ' ' << stored.scale;
  for (const ValueHistogram::Bin& bin : stats.histogram().bins)
    text << ' ' << bin.low << ".." << bin.high << ':' << bin.count;
  return text.str();
}

TEST(ValueStats, DoesNotDependOnHowValuesWereSharedOut) {
  for (const int distinct : {10, 999, 1000, 1001, 3000})
    for (const int shares : {2, 3, 7}) {
      ValueStats whole;
      std::vector<ValueStats> parts(static_cast<std::size_t>(shares));
      for (int at = 0; at < 6000; ++at) {
        const auto value = static_cast<float>(at % distinct) * 0.5F;
        whole.add(value);
        parts[static_cast<std::size_t>(at % shares)].add(value);
      }
      ValueStats sum;
      for (const ValueStats& part : parts) sum.add(part);
      EXPECT_EQ(text_of(sum), text_of(whole)) << distinct << " values in " << shares << " shares";
    }
}

}  // namespace
}  // namespace chunkhit
