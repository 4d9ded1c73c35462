#include "decode/channels.h"

#include <gtest/gtest.h>

#include <vector>

namespace chunkhit {
namespace {

std::vector<int> converted(std::vector<std::uint8_t> pixels, std::uint32_t from, std::uint32_t to) {
  const std::size_t pixel_count = pixels.size() / from;
  std::vector<std::uint8_t> out(pixel_count * to);
  convert_channels(pixels.data(), from, out.data(), to, pixel_count);
  return {out.begin(), out.end()};
}

TEST(Channels, MakeColourGreyWithPillowsWeights) {
  EXPECT_EQ(converted({255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 255}, 3, 1),
            (std::vector<int>{76, 150, 29, 255}));
  EXPECT_EQ(converted({10, 20, 30, 7}, 4, 1), (std::vector<int>{18}));
  EXPECT_EQ(converted({10, 20, 30, 7}, 4, 2), (std::vector<int>{18, 7}));
}

TEST(Channels, RepeatGreyAndFillAlpha) {
  EXPECT_EQ(converted({9}, 1, 2), (std::vector<int>{9, 255}));
  EXPECT_EQ(converted({9}, 1, 3), (std::vector<int>{9, 9, 9}));
  EXPECT_EQ(converted({9}, 1, 4), (std::vector<int>{9, 9, 9, 255}));
  EXPECT_EQ(converted({1, 2, 3}, 3, 4), (std::vector<int>{1, 2, 3, 255}));
}

TEST(Channels, KeepOrDropAlpha) {
  EXPECT_EQ(converted({9, 5}, 2, 4), (std::vector<int>{9, 9, 9, 5}));
  EXPECT_EQ(converted({9, 5}, 2, 1), (std::vector<int>{9}));
  EXPECT_EQ(converted({1, 2, 3, 4}, 4, 3), (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(converted({1, 2, 3, 4}, 4, 4), (std::vector<int>{1, 2, 3, 4}));
}

TEST(Channels, TurnInvertedCmykToRgb) {
  // Inverted: 255 is no ink. Without black ink the rest passes; with all of it nothing does.
  const std::vector<std::uint8_t> cmyk{200, 100, 0, 255, 200, 100, 50, 0, 200, 100, 255, 128};
  std::vector<std::uint8_t> rgb(9);
  cmyk_to_rgb(cmyk.data(), rgb.data(), 3);
  EXPECT_EQ(std::vector<int>(rgb.begin(), rgb.end()), (std::vector<int>{200, 100, 0, 0, 0, 0, 100, 50, 128}));
}

}  // namespace
}  // namespace chunkhit
