#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <random>
#include <string>

#include "ratings/rating_fields.h"

namespace chunkhit {
namespace {

std::optional<std::int64_t> integer_id(const std::string& text) {
  std::int64_t id = 0;
  return parse_integer_id(text, id) ? std::optional(id) : std::nullopt;
}

/// Checks that short numbers are read as long ones are.
std::optional<float> value_of(const std::string& text) {
  float value = 0;
  float unusual = 0;
  const bool is_number = parse_value(text, value);
  EXPECT_EQ(parse_unusual_value(text, unusual), is_number) << text;
  EXPECT_EQ(value, is_number ? unusual : value) << text;
  return is_number ? std::optional(value) : std::nullopt;
}

std::optional<std::int64_t> time_of(const std::string& text) {
  std::int64_t time = 0;
  return parse_time(text, time) ? std::optional(time) : std::nullopt;
}

TEST(IntegerId, IsExactUpTo64Bits) {
  EXPECT_EQ(integer_id("0"), 0);
  EXPECT_EQ(integer_id("-1"), -1);
  EXPECT_EQ(integer_id("12345678"), 12345678);
  EXPECT_EQ(integer_id("123456789"), 123456789);
  EXPECT_EQ(integer_id("1234567890123456"), 1234567890123456);
  EXPECT_EQ(integer_id("72048431380967004"), 72048431380967004);
  EXPECT_EQ(integer_id("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(integer_id("-9223372036854775808"), INT64_MIN);
}

TEST(IntegerId, IsNothingThatIsWrittenInAnotherWay) {
  for (const char* text : {"",
                           "-",
                           "+7",
                           "007",
                           "00",
                           "-0",
                           "-07",
                           "7.0",
                           "5863.0",
                           " 7",
                           "7 ",
                           "1e3",
                           "0x1f",
                           "7a",
                           "1234567a",
                           "12345678a",
                           "12345678901a3456",
                           "9223372036854775808",
                           "-9223372036854775809",
                           "99999999999999999999",
                           "/",
                           ":"})
    EXPECT_EQ(integer_id(text), std::nullopt) << text;
}

TEST(IntegerId, IsReadBackAsItIsWritten) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 20'000; ++round) {
    const auto id = static_cast<std::int64_t>(random() >> (random() % 64));
    ASSERT_EQ(integer_id(std::to_string(id)), id);
  }
}

TEST(Value, TakesSignsExponentsAndBlanks) {
  EXPECT_EQ(value_of("3.5"), 3.5f);
  EXPECT_EQ(value_of("+3.5"), 3.5f);
  EXPECT_EQ(value_of("-2"), -2.0f);
  EXPECT_EQ(value_of("1e3"), 1000.0f);
  EXPECT_EQ(value_of("2.5E-1"), 0.25f);
  EXPECT_EQ(value_of(" 4 "), 4.0f);
  EXPECT_EQ(value_of(".5"), 0.5f);
  EXPECT_EQ(value_of("5."), 5.0f);
  EXPECT_EQ(value_of("004"), 4.0f);
}

TEST(Value, IsFinite) {
  for (const char* text : {"",     " ", ".",     "-",   "+",    "nan", "NaN", "inf",  "-inf", "infinity",
                           "1e39", "x", "1.2.3", "3,5", "0x10", "1 2", "+-1", "NULL", "1..2", "5/"})
    EXPECT_EQ(value_of(text), std::nullopt) << text;
}

TEST(Value, IsRoundedAsStrtofRounds) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 200'000; ++round) {
    std::string text = std::to_string(random() >> (random() % 64));
    text.insert(text.begin() + static_cast<std::ptrdiff_t>(random() % (text.size() + 1)), '.');
    if (text == ".") continue;
    ASSERT_EQ(value_of(text), std::strtof(text.c_str(), nullptr)) << text;
  }
}

TEST(Time, IsTheWholeNumberBelow) {
  EXPECT_EQ(time_of("1112486027"), 1112486027);
  EXPECT_EQ(time_of("1588687728923"), 1588687728923);  // Amazon 2023: milliseconds
  EXPECT_EQ(time_of("978300760.0"), 978300760);
  EXPECT_EQ(time_of("9.78300760E8"), 978300760);
  EXPECT_EQ(time_of("964982703.5"), 964982703);
  EXPECT_EQ(time_of("-0.5"), -1);
  EXPECT_EQ(time_of("+5"), 5);
  EXPECT_EQ(time_of("-5"), -5);
  EXPECT_EQ(time_of("007"), 7);
  for (const char* text : {"", "nan", "inf", "1e300", "2005-09-66", "99999999999999999999", "+-1", "x"})
    EXPECT_EQ(time_of(text), std::nullopt) << text;
}

TEST(Value, IsKeptUnlessAFloatIsAnother) {
  const auto is_kept = [](std::string_view text) {
    float value = 0;
    EXPECT_TRUE(parse_value(text, value)) << text;
    return keeps_value(text, value);
  };
  for (const char* text : {"0", "0.000", "-0", "0e9", "3.3", "0.1", "16777216", "1e10", " +33554432.0 ",
                           "-16777218", "1.17549435e-38", "340282346638528859811704183484516925440"})
    EXPECT_TRUE(is_kept(text)) << text;
  for (const char* text : {"16777217", "-16777217.0", "16777216.5", "9007199254740993", "1e11", "1e-50",
                           "-1e-39", "0.000000000000000000000000000000000000000000001"})
    EXPECT_FALSE(is_kept(text)) << text;
}

// Checked with date -u -d "…" +%s.
TEST(Time, IsReadFromDatesOfIso8601) {
  EXPECT_EQ(time_of("2005-09-06"), 1125964800);
  EXPECT_EQ(time_of(" 2005-09-06 "), 1125964800);
  EXPECT_EQ(time_of("2005-09-06 17:05"), 1126026300);
  EXPECT_EQ(time_of("2005-09-06T17:05:09"), 1126026309);
  EXPECT_EQ(time_of("2005-09-06T17:05:09.987Z"), 1126026309);
  EXPECT_EQ(time_of("2005-09-06 17:05:09 UTC"), 1126026309);
  EXPECT_EQ(time_of("2005-09-06T17:05:09+02:00"), 1126026309 - 7200);
  EXPECT_EQ(time_of("2005-09-06T17:05:09-0530"), 1126026309 + 19800);
  EXPECT_EQ(time_of("2005-09-06T17:05:09+02"), 1126026309 - 7200);
  EXPECT_EQ(time_of("Tue Sep 06 17:05:09 -0530 2005"), 1126026309 + 19800);
  EXPECT_EQ(time_of("Tue Sep  6 17:05:09 2005"), 1126026309);
  EXPECT_EQ(time_of("1969-12-31 23:59:59.5"), -1);
  for (const char* text :
       {"2005-02-30", "2005-9-6", "2005-09-06T", "2005-09-06T24:00", "2005-09-06T17", "2005-09-06T17:60",
        "2005-09-06T17:05:09.", "2005-09-06T17:05+", "2005-09-06T17:05+2", "2005-09-06T17:05 CET",
        "2005-09-06x17:05", "Tue Abc 06 17:05:09 2005", "Tue epO 06 17:05:09 2005",
        "Tue Sep 31 17:05:09 2005", "Tue Sep 06 17:05:09 -0530", "2005-09-06T17:05:09+02:00x"})
    EXPECT_EQ(time_of(text), std::nullopt) << text;
}

TEST(Day, IsTheSecondsToItsBeginning) {
  std::int64_t seconds = 0;
  ASSERT_TRUE(parse_day("2005-09-06", seconds));
  EXPECT_EQ(seconds, 1125964800);  // date -u -d 2005-09-06 +%s
  ASSERT_TRUE(parse_day("2004-02-29", seconds));
  EXPECT_EQ(seconds, 1078012800);
  for (const char* text :
       {"", "2005-9-6", "2005-13-01", "2005-02-29", "2005/09/06", "2005-09-0x", "2005-09-061"})
    EXPECT_FALSE(parse_day(text, seconds)) << text;
}

TEST(RatingNumber, AWholeTimeWithAnExponentHadAFraction) {
  std::int64_t time = 0;
  bool is_cut = true;
  ASSERT_TRUE(parse_time("1.26e+09", time, &is_cut));
  EXPECT_TRUE(time == 1260000000 && !is_cut);
  ASSERT_TRUE(parse_time("1.5", time, &is_cut));
  EXPECT_TRUE(is_cut);
  ASSERT_TRUE(parse_time("2014-01-03 17:05:09.25", time, &is_cut));
  EXPECT_TRUE(is_cut);
}

}  // namespace
}  // namespace chunkhit
