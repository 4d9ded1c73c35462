#include "transform/image_transform.h"

#include <gtest/gtest.h>

#include <vector>

namespace chunkhit {
namespace {

// Pixels of one colour, as many as the plan's region has.
std::vector<std::uint8_t> sample_of(const TransformSpec& spec, std::uint32_t width, std::uint32_t height,
                                    const std::vector<std::uint8_t>& color) {
  const auto channels = static_cast<std::uint32_t>(color.size());
  const TransformPlan plan = plan_transform(spec, width, height, channels, false);
  std::vector<std::uint8_t> region;
  for (std::uint32_t i = 0; i < plan.region.width * plan.region.height; ++i)
    region.insert(region.end(), color.begin(), color.end());
  std::vector<std::uint8_t> sample(plan.sample.byte_count(), 0xcd);
  ImageTransform(spec).apply(
      plan,
      {region.data(), plan.region.width, plan.region.height, channels, plan.region.width * color.size()},
      sample.data());
  return sample;
}

TransformSpec fitting(std::uint32_t width, std::uint32_t height) {
  TransformSpec spec;
  spec.resize = Resize::fit;
  spec.resize_width = width;
  spec.resize_height = height;
  spec.channels = Channels::keep;
  spec.pad_color = {10, 20, 30};
  return spec;
}

using Values = std::vector<std::uint8_t>;

TEST(ImageTransform, SurroundsAFittedImageWithThePadColour) {
  EXPECT_EQ(sample_of(fitting(1, 3), 4, 4, {7, 8, 9}), (Values{10, 20, 30, 7, 8, 9, 10, 20, 30}));
}

TEST(ImageTransform, WritesPlanes) {
  TransformSpec spec = fitting(1, 3);
  spec.layout = Layout::nchw;
  EXPECT_EQ(sample_of(spec, 4, 4, {7, 8, 9}), (Values{10, 7, 10, 20, 8, 20, 30, 9, 30}));
}

TEST(ImageTransform, PadsGreyWithTheColoursLuma) {
  EXPECT_EQ(sample_of(fitting(3, 1), 4, 4, {7}), (Values{18, 7, 18}));
}

// Alpha 51 is a fifth, so that multiplying and dividing by it loses nothing of these colours.
TEST(ImageTransform, PadsOpaquely) {
  EXPECT_EQ(sample_of(fitting(1, 3), 4, 4, {5, 10, 15, 51}),
            (Values{10, 20, 30, 255, 5, 10, 15, 51, 10, 20, 30, 255}));
  EXPECT_EQ(sample_of(fitting(1, 3), 4, 4, {100, 51}), (Values{18, 255, 100, 51, 18, 255}));
}

TEST(ImageTransform, SurroundsACropOfASmallImageWithZerosAlsoInAlpha) {
  TransformSpec spec;
  spec.channels = Channels::keep;
  spec.crop_width = 3;
  spec.crop_height = 2;
  EXPECT_EQ(sample_of(spec, 1, 5, {7, 200}), (Values{0, 0, 7, 200, 0, 0, 0, 0, 7, 200, 0, 0}));
}

TEST(ImageTransform, SurroundsThePaddedCanvasWithZeros) {
  TransformSpec spec = fitting(1, 3);
  spec.crop_width = 1;
  spec.crop_height = 5;
  EXPECT_EQ(sample_of(spec, 4, 4, {9}), (Values{0, 18, 9, 18, 0}));
}

TEST(ImageTransform, KeepsColoursUnderZeroAlphaWhenNothingIsResized) {
  TransformSpec spec;
  spec.channels = Channels::keep;
  EXPECT_EQ(sample_of(spec, 1, 1, {7, 8, 9, 0}), (Values{7, 8, 9, 0}));
  spec.resize = Resize::exact;
  spec.resize_width = spec.resize_height = 1;
  EXPECT_EQ(sample_of(spec, 2, 2, {7, 8, 9, 0}), (Values{0, 0, 0, 0}));
}

}  // namespace
}  // namespace chunkhit
