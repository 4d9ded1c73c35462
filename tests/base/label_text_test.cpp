#include <gtest/gtest.h>

#include <clocale>
#include <cmath>
#include <limits>

#include "base/text.h"

namespace chunkhit {
namespace {

TEST(LabelText, TellsIntegersNumbersAndNames) {
  for (const char* text : {"0", "7", "-1", "+3", "007", " 7 ", "9223372036854775807", "-9223372036854775808"})
    EXPECT_EQ(label_form(text), LabelForm::integer) << text;
  for (const char* text : {"7.0", "-1.5", "+.5", "1e3", "5.", "\t0.25", "1e-60"})
    EXPECT_EQ(label_form(text), LabelForm::number) << text;
  for (const char* text :
       {"cat", "7 cats", "1,5", "0x10", "--1", "+-1", "9223372036854775808", "1e99", "é", "+"})
    EXPECT_EQ(label_form(text), LabelForm::name) << text;
}

TEST(LabelText, TellsWhatIsNeverALabel) {
  for (const char* text : {"", " ", "\t "}) EXPECT_EQ(label_form(text), LabelForm::missing) << text;
  for (const char* text : {"nan", "NaN", "-inf", "Infinity", "+inf"})
    EXPECT_EQ(label_form(text), LabelForm::not_finite) << text;
  for (const char* text : {"caf\xe9", "\xff", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82"})
    EXPECT_EQ(label_form(text), LabelForm::not_utf8) << text;
}

TEST(LabelText, ReadsAllSixtyFourBitsOfAnInteger) {
  EXPECT_EQ(parse_integer("9007199254740993"), 9007199254740993);
  EXPECT_EQ(parse_integer("-9223372036854775808"), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(parse_integer("9223372036854775808"), std::nullopt);
  EXPECT_EQ(parse_integer("7.0"), std::nullopt);
}

TEST(LabelText, ReadsTheNearestFloat) {
  EXPECT_EQ(parse_number("0.1"), 0.1f);
  EXPECT_EQ(parse_number("16777217"), 16777216.0f);
  EXPECT_EQ(parse_number("1e-45"), std::numeric_limits<float>::denorm_min());
  EXPECT_EQ(parse_number("1e-60"), 0.0f);
  EXPECT_EQ(parse_number("3.5e38"), std::nullopt);
  EXPECT_EQ(parse_number("1e999"), std::nullopt);
  EXPECT_EQ(parse_number("nan"), std::nullopt);
}

TEST(LabelText, WritesFloatsThatReadTheSame) {
  for (const float value : {0.1f, -1.0f, 1e-45f, 3.4028235e38f, 16777216.0f, 1.0f / 3})
    EXPECT_EQ(parse_number(number_text(value)), value) << number_text(value);
}

}  // namespace
}  // namespace chunkhit
