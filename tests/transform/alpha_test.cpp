#include <gtest/gtest.h>

#include <array>

#include "transform/image_transform.h"

namespace chunkhit {
namespace {

TEST(Alpha, MultipliesAsARoundedDivisionBy255) {
  for (unsigned color = 0; color < 256; ++color) {
    for (unsigned alpha = 0; alpha < 256; ++alpha) {
      std::array<std::uint8_t, 2> pixel{static_cast<std::uint8_t>(color), static_cast<std::uint8_t>(alpha)};
      multiply_alpha(pixel.data(), 2, 1);
      ASSERT_EQ(pixel[0], (2 * color * alpha + 255) / 510) << color << " under alpha " << alpha;
      ASSERT_EQ(pixel[1], alpha);
    }
  }
}

TEST(Alpha, DividesByCuttingOffAndClamps) {
  std::array<std::uint8_t, 8> pixels{10, 50, 128, 128, 9, 200, 0, 100};
  divide_alpha(pixels.data(), 4, 2);
  EXPECT_EQ(pixels, (std::array<std::uint8_t, 8>{19, 99, 255, 128, 22, 255, 0, 100}));
}

TEST(Alpha, KeepsColoursUnderNoAndFullAlpha) {
  std::array<std::uint8_t, 8> pixels{10, 20, 30, 0, 40, 50, 60, 255};
  const auto before = pixels;
  divide_alpha(pixels.data(), 4, 2);
  EXPECT_EQ(pixels, before);
}

TEST(Alpha, LeavesPixelsWithoutAlphaAlone) {
  std::array<std::uint8_t, 6> pixels{10, 20, 30, 40, 50, 60};
  const auto before = pixels;
  multiply_alpha(pixels.data(), 3, 2);
  divide_alpha(pixels.data(), 1, 6);
  EXPECT_EQ(pixels, before);
}

}  // namespace
}  // namespace chunkhit
