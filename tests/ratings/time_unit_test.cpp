#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "ratings/rating_intake.h"

namespace chunkhit {
namespace {

TEST(TimeUnit, IsToldByTheSizeOfATime) {
  EXPECT_EQ(time_unit(0), TimeUnit::seconds);
  EXPECT_EQ(time_unit(1588687728), TimeUnit::seconds);
  EXPECT_EQ(time_unit(-99'999'999'999), TimeUnit::seconds);
  EXPECT_EQ(time_unit(1588687728923), TimeUnit::milliseconds);  // Amazon 2023
  EXPECT_EQ(time_unit(-1588687728923), TimeUnit::milliseconds);
  EXPECT_EQ(time_unit(1588687728923000), TimeUnit::microseconds);
  EXPECT_EQ(time_unit(1588687728923000000), TimeUnit::nanoseconds);
  EXPECT_EQ(time_unit(INT64_MIN), TimeUnit::nanoseconds);
}

TEST(TimeUnit, IsChangedToAnother) {
  EXPECT_EQ(in_unit(1588687728, TimeUnit::milliseconds), 1588687728000);
  EXPECT_EQ(in_unit(1588687728923, TimeUnit::milliseconds), 1588687728923);
  EXPECT_EQ(in_unit(1588687728923, TimeUnit::seconds), 1588687728);
  EXPECT_EQ(in_unit(-1588687728923, TimeUnit::seconds), -1588687729);
  EXPECT_EQ(in_unit(99'999'999'999, TimeUnit::nanoseconds), INT64_MAX);
  EXPECT_EQ(in_unit(-99'999'999'999, TimeUnit::nanoseconds), INT64_MIN);
}

TEST(TimeUnits, SayWhichInputsDiffer) {
  TimeUnits units;
  units.end("none.csv");
  EXPECT_FALSE(units.unit());
  units.add(std::vector<std::int64_t>{0, 1588687728, 1588687728});
  units.end("a.csv");
  units.add(std::vector<std::int64_t>{1588687728923, 1588687728924, 0});
  units.end("b.csv");
  EXPECT_EQ(units.unit(), TimeUnit::seconds);
  EXPECT_EQ(units.difference(), "b.csv: times are milliseconds, those of a.csv are seconds");
}

// Seconds and milliseconds in one input were compared as they were: the unit was that of most of them.
TEST(TimeUnits, SayThatAnInputHasSeveral) {
  TimeUnits units;
  units.add(std::vector<std::int64_t>{1588687728, -1, 0, 1588687729});
  units.add(std::vector<std::int64_t>{1588687728923});
  units.end("a.csv");
  EXPECT_EQ(units.unit(), TimeUnit::seconds);
  EXPECT_EQ(units.difference(), "a.csv: times are seconds and milliseconds");
}

TEST(TimeUnits, AreNotToldByTimesThatAreMissing) {
  TimeUnits units;
  units.add(std::vector<std::int64_t>{0, 0, 0, 1588687728923});
  units.end("a.csv");
  EXPECT_EQ(units.unit(), TimeUnit::milliseconds);
  EXPECT_EQ(units.difference(), "");
}

}  // namespace
}  // namespace chunkhit
