#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/words.h"

namespace chunkhit {
namespace {

TEST(DidYouMean, NamesTheNearestOfAFew) {
  const std::vector<std::string> names{"--resize", "--resample", "--crop", "--codec", "--max-side"};
  EXPECT_EQ(did_you_mean("--resice", names), "; did you mean \"--resize\"?");
  EXPECT_EQ(did_you_mean("--reisze", names), "; did you mean \"--resize\"?");
  EXPECT_EQ(did_you_mean("--RESAMPLE", names), "; did you mean \"--resample\"?");
  EXPECT_EQ(did_you_mean("--max_side", names), "; did you mean \"--max-side\"?");
  EXPECT_EQ(did_you_mean("--max", names), "; did you mean \"--max-side\"?");
  EXPECT_EQ(did_you_mean("--quiet", names), "");
  EXPECT_EQ(did_you_mean("", names), "");
  EXPECT_EQ(did_you_mean("resize", {}), "");
}

TEST(DidYouMean, KeepsToNamesThatShareMostLetters) {
  const std::vector<std::string> columns{"id", "a\x1b"};
  EXPECT_EQ(did_you_mean("xy", columns), "");
  EXPECT_EQ(did_you_mean("ab", columns), "");
  EXPECT_EQ(did_you_mean("abc", std::vector<std::string>{"ab\x1b"}), "; did you mean \"ab\\x1b\"?");
  EXPECT_EQ(did_you_mean(std::string(100'000, 'i'), columns), "");
}

TEST(DidYouMean, KnowsTheWordsOfOtherTools) {
  const std::vector<std::string> flags{"--order", "--sizes", "--threads", "--resize", "--split"};
  EXPECT_EQ(did_you_mean("--workers", flags), "; did you mean \"--threads\"?");
  EXPECT_EQ(did_you_mean("--size", flags), "; did you mean \"--resize\"?");
  const std::vector<std::string> options{"test_file", "test", "seed"};
  EXPECT_EQ(did_you_mean("test_size", options), "; did you mean \"test\"?");
  EXPECT_EQ(did_you_mean("random_state", options), "; did you mean \"seed\"?");
}

TEST(DidYouMean, NamesNoOpposite) {
  EXPECT_EQ(did_you_mean("flip_vertical", std::vector<std::string>{"flip_horizontal"}), "");
  EXPECT_EQ(did_you_mean("min_side", std::vector<std::string>{"max_side"}), "");
}

}  // namespace
}  // namespace chunkhit
