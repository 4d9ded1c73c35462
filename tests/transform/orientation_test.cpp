#include "transform/orientation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string>

namespace chunkhit {
namespace {

// Rows of letters as an image of one channel.
Image image(std::initializer_list<std::string> rows) {
  Image image;
  image.reshape(static_cast<std::uint32_t>(rows.begin()->size()), static_cast<std::uint32_t>(rows.size()), 1);
  std::uint32_t y = 0;
  for (const std::string& row : rows) std::copy(row.begin(), row.end(), image.row(y++));
  return image;
}

std::string text(const Image& image) {
  std::string rows;
  for (std::uint32_t y = 0; y < image.height; ++y)
    rows += std::string(image.row(y), image.row(y) + image.width) + " ";
  return rows;
}

TEST(Orientation, TurnsAsExifSays) {
  const Image stored = image({"abc", "def"});
  const std::array<const char*, 8> kUpright{"abc def ",  "cba fed ",  "fed cba ",  "def abc ",
                                            "ad be cf ", "da eb fc ", "fc eb da ", "cf be ad "};
  for (int orientation = 1; orientation <= 8; ++orientation) {
    Image upright;
    turn_upright(stored.view(), orientation, upright);
    EXPECT_EQ(text(upright), kUpright[static_cast<std::size_t>(orientation) - 1])
        << "orientation " << orientation;
  }
}

TEST(Orientation, CountsAnUnknownNumberAsUpright) {
  for (const int orientation : {0, 9, -1}) {
    Image upright;
    turn_upright(image({"ab"}).view(), orientation, upright);
    EXPECT_EQ(text(upright), "ab ");
    EXPECT_FALSE(swaps_sides(orientation));
  }
}

TEST(Orientation, KeepsTheBytesOfAPixelTogether) {
  for (const std::uint32_t channels : {1u, 2u, 3u, 4u}) {
    Image stored;
    stored.reshape(70, 130, channels);
    for (std::size_t i = 0; i < stored.pixels.size(); ++i)
      stored.pixels[i] = static_cast<std::uint8_t>(i % 251);
    Image upright;
    turn_upright(stored.view(), 6, upright);
    for (std::uint32_t y = 0; y < 70; ++y)
      for (std::uint32_t x = 0; x < 130; ++x)
        for (std::uint32_t channel = 0; channel < channels; ++channel)
          ASSERT_EQ(upright.row(y)[x * channels + channel], stored.row(129 - x)[y * channels + channel]);
  }
}

// Turning the whole and cutting equals cutting the stored region and turning that.
TEST(Orientation, FindsTheStoredRegion) {
  Image stored;
  stored.reshape(9, 5, 1);
  for (std::size_t i = 0; i < stored.pixels.size(); ++i) stored.pixels[i] = static_cast<std::uint8_t>(i);
  constexpr Rect kWanted{1, 2, 3, 2};
  for (int orientation = 1; orientation <= 8; ++orientation) {
    Image whole, part;
    turn_upright(stored.view(), orientation, whole);
    const Rect region = stored_region(kWanted, orientation, stored.width, stored.height);
    turn_upright({stored.row(region.y) + region.x, region.width, region.height, 1, stored.row_bytes()},
                 orientation, part);
    ASSERT_EQ(part.width, kWanted.width);
    ASSERT_EQ(part.height, kWanted.height);
    for (std::uint32_t y = 0; y < kWanted.height; ++y)
      for (std::uint32_t x = 0; x < kWanted.width; ++x)
        EXPECT_EQ(part.row(y)[x], whole.row(kWanted.y + y)[kWanted.x + x]) << "orientation " << orientation;
  }
}

}  // namespace
}  // namespace chunkhit
