#include "transform/transform_plan.h"

#include <gtest/gtest.h>

namespace chunkhit {
namespace {

TransformSpec resizing(Resize resize, std::uint32_t width, std::uint32_t height = 0) {
  TransformSpec spec;
  spec.resize = resize;
  spec.resize_width = width;
  spec.resize_height = height;
  return spec;
}

TransformSpec cropping(TransformSpec spec, std::uint32_t width, std::uint32_t height) {
  spec.crop_width = width;
  spec.crop_height = height;
  return spec;
}

using Size = std::pair<std::uint32_t, std::uint32_t>;

Size resized(const TransformSpec& spec, std::uint32_t width, std::uint32_t height) {
  const TransformPlan plan = plan_transform(spec, width, height, 3, false);
  return {plan.resized_width, plan.resized_height};
}

TEST(TransformPlan, BringsTheShortSideToItsLength) {
  EXPECT_EQ(resized(resizing(Resize::short_side, 256), 512, 384), (Size{341, 256}));
  EXPECT_EQ(resized(resizing(Resize::short_side, 256), 384, 512), (Size{256, 341}));
  EXPECT_EQ(resized(resizing(Resize::short_side, 384), 512, 384), (Size{512, 384}));
}

TEST(TransformPlan, BringsTheLongSideToItsLengthAndKeepsAPixelOfTheOther) {
  EXPECT_EQ(resized(resizing(Resize::long_side, 256), 512, 384), (Size{256, 192}));
  EXPECT_EQ(resized(resizing(Resize::long_side, 10), 2, 1000), (Size{1, 10}));
}

TEST(TransformPlan, FitsWithHalvesRoundedToEven) {
  EXPECT_EQ(resized(resizing(Resize::fit, 33, 33), 64, 32), (Size{33, 16}));
  EXPECT_EQ(resized(resizing(Resize::fit, 35, 35), 64, 32), (Size{35, 18}));
  EXPECT_EQ(resized(resizing(Resize::fit, 35, 35), 10'000, 1), (Size{35, 1}));
}

TEST(TransformPlan, CentresAFittedImage) {
  const TransformPlan plan = plan_transform(resizing(Resize::fit, 33, 33), 64, 32, 3, false);
  EXPECT_EQ(plan.window, (Rect{0, 0, 33, 16}));
  EXPECT_EQ(plan.paste_x, 0u);
  EXPECT_EQ(plan.paste_y, 8u);  // 8.5 to even
  EXPECT_EQ(plan.canvas, (Rect{0, 0, 33, 33}));
  EXPECT_EQ(plan.sample, (SampleShape{33, 33, 3, Layout::nhwc}));
}

TEST(TransformPlan, CropsTheCentreWithHalvesRoundedToEven) {
  EXPECT_EQ(plan_transform(cropping({}, 4, 4), 9, 7, 3, false).window, (Rect{2, 2, 4, 4}));  // 2.5 and 1.5
  EXPECT_EQ(plan_transform(cropping({}, 5, 3), 9, 7, 3, false).window, (Rect{2, 2, 5, 3}));
}

TEST(TransformPlan, PutsTheSpareRowOfASmallImageBelow) {
  const TransformPlan plan = plan_transform(cropping({}, 4, 8), 6, 5, 3, false);
  EXPECT_EQ(plan.window, (Rect{1, 0, 4, 5}));
  EXPECT_EQ(plan.paste_y, 1u);
  EXPECT_EQ(plan.canvas, (Rect{0, 1, 4, 5}));
  EXPECT_EQ(plan.sample, (SampleShape{8, 4, 3, Layout::nhwc}));
}

TEST(TransformPlan, CropsTheCanvasOfAFittedImage) {
  const TransformPlan plan =
      plan_transform(cropping(resizing(Resize::fit, 40, 40), 20, 60), 80, 40, 3, false);
  EXPECT_EQ(plan.window, (Rect{10, 0, 20, 20}));
  EXPECT_EQ(plan.paste_y, 20u);
  EXPECT_EQ(plan.canvas, (Rect{0, 10, 20, 40}));
}

TEST(TransformPlan, AsksTheDecoderOnlyForWhatTheWindowNeeds) {
  const TransformPlan plan =
      plan_transform(cropping(resizing(Resize::exact, 96, 128), 64, 64), 512, 384, 3, false);
  EXPECT_EQ(plan.window, (Rect{16, 32, 64, 64}));
  EXPECT_EQ(plan.region, (Rect{83, 95, 346, 195}));
  EXPECT_EQ(plan_transform(cropping({}, 4, 4), 9, 7, 3, false).region, (Rect{2, 2, 4, 4}));
}

TEST(TransformPlan, ShrinksWhileAReductionByTwoIsLeft) {
  TransformSpec spec = resizing(Resize::exact, 64, 48);
  spec.decode = JpegDecode::fast;
  EXPECT_EQ(plan_transform(spec, 1024, 768, 3, true).shrink, 8u);
  EXPECT_EQ(plan_transform(spec, 1023, 768, 3, true).shrink, 4u);
  EXPECT_EQ(plan_transform(spec, 512, 384, 3, true).shrink, 4u);
  EXPECT_EQ(plan_transform(spec, 255, 192, 3, true).shrink, 1u);
  EXPECT_EQ(plan_transform(spec, 1024, 768, 3, false).shrink, 1u);
  spec.decode = JpegDecode::exact;
  EXPECT_EQ(plan_transform(spec, 1024, 768, 3, true).shrink, 1u);
}

TEST(TransformPlan, DoesNotShrinkASideThatWouldThenBeEnlarged) {
  TransformSpec spec = resizing(Resize::exact, 8, 60);
  spec.decode = JpegDecode::fast;
  EXPECT_EQ(plan_transform(spec, 1024, 100, 3, true).shrink, 1u);
  EXPECT_EQ(plan_transform(spec, 4096, 30, 3, true).shrink, 8u);  // enlarged anyway
}

TEST(TransformPlan, KeepsFractionalEdgesAfterShrinking) {
  TransformSpec spec = resizing(Resize::exact, 20, 20);
  spec.decode = JpegDecode::fast;
  const TransformPlan plan = plan_transform(spec, 181, 170, 3, true);
  EXPECT_EQ(plan.shrink, 4u);
  EXPECT_EQ(plan.source_width, 46u);
  EXPECT_EQ(plan.source_height, 43u);
  EXPECT_EQ(plan.box_width, 45.25f);
  EXPECT_EQ(plan.box_height, 42.5f);
}

TEST(TransformPlan, DoesNotShiftATurnedImageByItsPartlyCoveredPixels) {
  TransformSpec spec = resizing(Resize::exact, 16);
  spec.resize_height = 16;
  spec.decode = JpegDecode::fast;
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const TransformPlan plan = plan_transform(spec, 1021, 1019, 3, true, orientation);
    const bool at_left = orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7;
    const bool at_top = orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8;
    EXPECT_EQ(plan.box_x, at_left ? static_cast<float>(plan.source_width) - plan.box_width : 0.0f)
        << orientation;
    EXPECT_EQ(plan.box_y, at_top ? static_cast<float>(plan.source_height) - plan.box_height : 0.0f)
        << orientation;
  }
}

TEST(TransformPlan, NeverShrinksWithoutAResize) {
  TransformSpec spec;
  spec.decode = JpegDecode::fast;
  EXPECT_EQ(plan_transform(cropping(spec, 8, 8), 1024, 768, 3, true).shrink, 1u);
}

TEST(TransformPlan, ChoosesChannels) {
  TransformSpec spec;
  for (const auto& [channels, count] : {std::pair{Channels::rgb, 3u}, std::pair{Channels::gray, 1u},
                                        std::pair{Channels::rgba, 4u}, std::pair{Channels::keep, 2u}}) {
    spec.channels = channels;
    EXPECT_EQ(plan_transform(spec, 5, 5, 2, false).sample.channels, count);
  }
}

TEST(TransformPlan, ProblemsSidesBeyondTheLimit) {
  EXPECT_EQ(plan_transform({}, kMaxSidePixels, 1, 3, false).error, "");
  EXPECT_EQ(plan_transform({}, kMaxSidePixels + 1, 1, 3, false).error,
            "the image has a side of 1048577 pixels, over the limit of 1048576");
  const TransformPlan stretched = plan_transform(resizing(Resize::short_side, 256), 1, 100'000, 3, false);
  EXPECT_EQ(stretched.error, "the resized image has a side of 25600000 pixels, over the limit of 1048576");
  EXPECT_EQ(stretched.sample.byte_count(), 0u);
  EXPECT_EQ(plan_transform({}, 0, 4, 3, false).error, "the image has no pixels");
}

}  // namespace
}  // namespace chunkhit
