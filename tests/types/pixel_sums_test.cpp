#include "types/pixel_sums.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace chunkhit {
namespace {

std::vector<std::uint8_t> noise(std::size_t count) {
  std::mt19937 random(7);
  std::vector<std::uint8_t> bytes(count);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
  return bytes;
}

PixelSums counted_by_hand(const std::vector<std::uint8_t>& sample, const SampleShape& shape) {
  PixelSums sums;
  const std::size_t pixels = std::size_t{shape.height} * shape.width;
  sums.pixel_count = pixels;
  for (std::size_t pixel = 0; pixel < pixels; ++pixel)
    for (std::size_t channel = 0; channel < shape.channels; ++channel) {
      const std::uint64_t value =
          sample[shape.layout == Layout::nhwc ? pixel * shape.channels + channel : channel * pixels + pixel];
      sums.sum[channel] += value;
      sums.sum_of_squares[channel] += value * value;
    }
  return sums;
}

TEST(PixelSums, EqualSumsCountedByHandForEveryShapeAndLayout) {
  for (const Layout layout : {Layout::nhwc, Layout::nchw})
    for (std::uint32_t channels = 1; channels <= 4; ++channels)
      for (const auto& [height, width] :
           {std::pair{1u, 1u}, {3u, 5u}, {17u, 31u}, {64u, 64u}, {600u, 501u}}) {
        const SampleShape shape{height, width, channels, layout};
        const std::vector<std::uint8_t> sample = noise(shape.byte_count());
        PixelSums sums;
        sums.add_sample(sample.data(), shape);
        const PixelSums expected = counted_by_hand(sample, shape);
        EXPECT_EQ(sums.sum, expected.sum) << height << "x" << width << "x" << channels;
        EXPECT_EQ(sums.sum_of_squares, expected.sum_of_squares) << height << "x" << width << "x" << channels;
        EXPECT_EQ(sums.pixel_count, expected.pixel_count);
      }
}

TEST(PixelSums, DoNotOverflowOnTheBrightestImage) {
  const SampleShape shape{2000, 2000, 3, Layout::nhwc};
  const std::vector<std::uint8_t> white(shape.byte_count(), 255);
  PixelSums sums;
  sums.add_sample(white.data(), shape);
  EXPECT_EQ(sums.sum_of_squares[2], 4'000'000ull * 255 * 255);
  EXPECT_EQ(sums.mean(3), (std::vector<double>{1, 1, 1}));
  EXPECT_EQ(sums.std(3), (std::vector<double>{0, 0, 0}));
}

TEST(PixelSums, OfNothingHaveNoMean) { EXPECT_TRUE(PixelSums().mean(3).empty()); }

}  // namespace
}  // namespace chunkhit
