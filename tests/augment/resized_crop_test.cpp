#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "augment/random_crop.h"
#include "augment/sample_writer.h"
#include "chunkhit/error.h"
#include "transform/image_transform.h"

namespace chunkhit {
namespace {

AugmentSpec resized_crop_of(std::uint32_t height, std::uint32_t width) {
  AugmentSpec spec;
  spec.resized_crop.height = height;
  spec.resized_crop.width = width;
  return spec;
}

// The boxes that schemas/order.md names.
TEST(ResizedCrop, HasTheBoxesThatThePageNames) {
  const ResizedCrop crop(resized_crop_of(224, 224));
  EXPECT_EQ(crop(375, 500, {0, 0, 0, 0}).box, (Rect{103, 2, 287, 373}));
  EXPECT_EQ(crop(375, 500, {7, 3, 123456, 1}).box, (Rect{177, 0, 311, 285}));
  EXPECT_EQ(crop(100, 1000, {7, 0, 0, 0}).box, (Rect{433, 0, 133, 100}));
}

TEST(ResizedCrop, ShowsTheMiddleWhereNoBoxOfTheAspectFits) {
  AugmentSpec spec = resized_crop_of(10, 10);
  spec.resized_crop.area = {1, 1};
  spec.resized_crop.aspect = {2, 3};
  EXPECT_EQ(ResizedCrop(spec)(100, 100, {}).box, (Rect{0, 25, 100, 50}));
  EXPECT_EQ(ResizedCrop(spec)(100, 1001, {}).box, (Rect{350, 0, 300, 100}));
  EXPECT_EQ(ResizedCrop(spec)(1, 1, {}).box, (Rect{0, 0, 1, 1}));
  spec.resized_crop.aspect = {1000, 1000};
  EXPECT_EQ(ResizedCrop(spec)(9, 3, {}).box, (Rect{0, 4, 3, 1}));
}

TEST(ResizedCrop, StaysInsideOfImagesOfAnySize) {
  const ResizedCrop crop(resized_crop_of(5, 6));
  for (const std::uint32_t height : {1u, 2u, 7u, 100u, 1u << 20})
    for (const std::uint32_t width : {1u, 3u, 50u, 1u << 20})
      for (std::uint64_t sample = 0; sample < 100; ++sample) {
        const ResizedPart part = crop(height, width, {1, 2, sample, 3});
        ASSERT_GE(part.box.width, 1u);
        ASSERT_GE(part.box.height, 1u);
        ASSERT_LE(part.box.x + part.box.width, width);
        ASSERT_LE(part.box.y + part.box.height, height);
        ASSERT_EQ(part.request.source_width, part.box.width);
        ASSERT_EQ(part.request.window, (Rect{0, 0, 6, 5}));
      }
}

// As images are packed with --resize 20 --crop 13x12, which tests/transform compares with Pillow.
TEST(ResizedCrop, CropsForEvaluationAsPackingDoes) {
  const SampleShape stored{31, 47, 3, Layout::nhwc};
  std::vector<std::uint8_t> pixels(stored.byte_count());
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(i * i / 7 + i);
  TransformSpec transform;
  transform.resize = Resize::short_side;
  transform.resize_width = 20;
  transform.crop_width = 13;
  transform.crop_height = 12;
  const TransformPlan plan = plan_transform(transform, stored.width, stored.height, 3, false);
  std::vector<std::uint8_t> packed(plan.sample.byte_count());
  const Image whole{stored.width, stored.height, 3, {pixels.begin(), pixels.end()}};
  const ImageView view = whole.view();
  ImageTransform(transform).apply(plan,
                                  {view.row(plan.region.y) + std::size_t{plan.region.x} * 3,
                                   plan.region.width, plan.region.height, 3, view.row_bytes},
                                  packed.data());
  AugmentSpec augment;
  augment.resize_short = 20;
  augment.crop_width = 13;
  augment.crop_height = 12;
  const SampleWriter writer({stored, augment, Dtype::uint8, Layout::nhwc, {}});
  EXPECT_FALSE(writer.copies());
  std::vector<std::uint8_t> written(writer.sample_bytes());
  writer.write(pixels.data(), {}, written.data());
  EXPECT_EQ(written, packed);
}

std::string error_of(const AugmentSpec& augment, const SampleShape& stored = {40, 50, 3, Layout::nhwc}) {
  try {
    const SampleWriter writer({stored, augment, Dtype::uint8, Layout::nhwc, {}});
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    return error.what();
  }
  return "accepted";
}

TEST(ResizedCrop, NamesTheOptionThatMakesNoSense) {
  const AugmentSpec good = resized_crop_of(8, 9);
  const auto with = [&](auto change) {
    AugmentSpec spec = good;
    change(spec);
    return error_of(spec);
  };
  EXPECT_EQ(error_of(good), "accepted");
  EXPECT_EQ(error_of(resized_crop_of(8, 0)),
            "augment.resized_crop.height: goes with resized_crop.width, both or neither");
  AugmentSpec without_sides;
  without_sides.resized_crop.area = {0.5, 1};
  EXPECT_EQ(error_of(without_sides),
            "augment.resized_crop.area: goes with resized_crop.height and resized_crop.width");
  EXPECT_EQ(error_of(resized_crop_of(8, 2'000'000)),
            "augment.resized_crop.width: 2000000 pixels, expected at most 1048576");
  EXPECT_EQ(with([](AugmentSpec& spec) { spec.resize_short = 5; }),
            "augment.resize_short: excludes resized_crop");
  EXPECT_EQ(with([](AugmentSpec& spec) { spec.crop_height = spec.crop_width = 5; }),
            "augment.crop_height: excludes resized_crop");
  EXPECT_EQ(with([](AugmentSpec& spec) { spec.random_crop = true; }),
            "augment.random_crop: needs crop_height and crop_width");
  EXPECT_EQ(with([](AugmentSpec& spec) { spec.flip_horizontal = 2; }),
            "augment.flip_horizontal: must be from 0 to 1");
  EXPECT_EQ(
      with([](AugmentSpec& spec) {
        spec.resized_crop.area = {0, 1};
      }),
      "augment.resized_crop.area: found 0 to 1, expected two numbers above 0 and up to 1, the lesser first");
  EXPECT_EQ(with([](AugmentSpec& spec) {
              spec.resized_crop.area = {0.5, 1.5};
            }),
            "augment.resized_crop.area: found 0.5 to 1.5, expected two numbers above 0 and up to 1, the "
            "lesser first");
  EXPECT_EQ(
      with([](AugmentSpec& spec) {
        spec.resized_crop.aspect = {2, 1};
      }),
      "augment.resized_crop.aspect: found 2 to 1, expected two numbers from 0.001 to 1000, the lesser first");
  EXPECT_EQ(with([](AugmentSpec& spec) {
              spec.resized_crop.aspect = {1, 0.0 / 0.0};
            }).substr(0, 28),
            "augment.resized_crop.aspect:");

  AugmentSpec filtered;
  filtered.resample = Filter::nearest;
  EXPECT_EQ(error_of(filtered), "augment.resample: needs resized_crop or resize_short");

  AugmentSpec evaluation;
  evaluation.resize_short = 20;
  EXPECT_EQ(error_of(evaluation), "accepted");
  evaluation.crop_height = evaluation.crop_width = 21;
  EXPECT_EQ(error_of(evaluation), "accepted") << "zeros surround the image";
  evaluation.random_crop = true;
  EXPECT_EQ(error_of(evaluation), "augment.crop_height: 21 of 20 pixels");
  evaluation.random_crop = false;
  evaluation.crop_height = evaluation.crop_width = 20;
  evaluation.crop_padding = 1;
  EXPECT_EQ(error_of(evaluation), "augment.crop_padding: excludes resize_short");
  evaluation.crop_padding = 0;
  evaluation.resize_short = 1u << 20;
  EXPECT_EQ(error_of(evaluation, {10, 1000, 3, Layout::nhwc}).substr(0, 41),
            "augment.resize_short: the resized image h");
  EXPECT_EQ(error_of(good, {1, 2'000'000, 3, Layout::nhwc}),
            "augment.resized_crop: the image has a side of 2000000 pixels, expected at most 1048576");
}

}  // namespace
}  // namespace chunkhit
