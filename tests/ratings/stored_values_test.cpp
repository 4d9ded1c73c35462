#include "ratings/stored_values.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "chunkhit/error.h"

namespace chunkhit {
namespace {

TEST(FrozenValues, AreReadBackFromTheirText) {
  for (const std::string text : {"auto", "none", "u8", "u8:0.5", "u16:0.001", "f32"})
    EXPECT_EQ(stored_values_text(parse_stored_values(text)), text);
  EXPECT_EQ(stored_values_text(parse_stored_values("u8:1")), "u8");
  for (const std::string text :
       {"", "u9", "u8:", "u8:0", "u8:-1", "u8:1x", "u8:inf", "u8:nan", "f32:1", "none:2"})
    EXPECT_THROW(static_cast<void>(parse_stored_values(text)), Error) << text;
}

TEST(FrozenValues, HoldWholeMultiplesOfTheScaleExactly) {
  const auto held = [](const std::string& type, float rating) {
    return holds(*parse_stored_values(type), rating);
  };
  EXPECT_TRUE(held("none", 1) && held("u8", 255) && held("u8:0.5", 127.5F) && held("u8:0.1", 3.7F));
  EXPECT_TRUE(held("u16", 65'535) && held("u16:0.01", 3.14F) && held("f32", -1e30F));
  EXPECT_FALSE(held("none", 2) || held("none", 0) || held("u8", 256) || held("u8", -1) || held("u8", 0.5F));
  EXPECT_FALSE(held("u8:0.5", 128) || held("u8:0.5", 3.7F) || held("u16", 65'536) ||
               held("u16:0.01", 3.145F));
}

TEST(FrozenValues, JudgeOnlyValuesThatTheRulesLeaveAsTheyAre) {
  const std::vector<float> values{5, 0, 0.5F, 300};
  const auto misfit = [&](const RatingRules& rules) { return find_misfit(values, rules); };
  const StoredValues u8{ValueType::u8, 1};
  EXPECT_EQ(misfit({}), 4u);
  EXPECT_EQ(misfit({.values = u8}), 2u);
  EXPECT_EQ(misfit({.above = 0.9F, .values = u8}), 3u);
  EXPECT_EQ(misfit({.above = 300.0F, .values = u8}), 4u);
  EXPECT_EQ(misfit({.duplicates = Duplicates::sum, .values = u8}), 4u);
  EXPECT_EQ(misfit({.binarize = true, .values = u8}), 4u);
  const StoredValues scaled{ValueType::u16, 0.5};
  EXPECT_EQ(misfit({.values = scaled}), 4u);
  EXPECT_EQ(misfit({.values = StoredValues{ValueType::none, 1}}), 0u);
}

}  // namespace
}  // namespace chunkhit
