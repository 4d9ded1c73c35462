#include "types/input_sizes.h"

#include <gtest/gtest.h>

#include <vector>

namespace chunkhit {
namespace {

using Ranges = std::map<double, std::uint64_t>;

InputSizes sizes_of(const std::vector<InputImage>& images) {
  InputSizes sizes;
  for (const InputImage& image : images) add_image(image, sizes);
  return sizes;
}

TEST(InputSizes, CountRangesThatAreAnEighthOfAPowerOfTwoWide) {
  std::vector<InputImage> images;
  for (const std::uint32_t width : {1u, 7u, 8u, 9u, 15u, 16u, 17u, 18u, 255u, 256u, 287u, 288u, 511u, 512u})
    images.push_back({"png", width, 1});
  const InputSizes sizes = sizes_of(images);
  ASSERT_EQ(sizes.formats.size(), 1);
  EXPECT_EQ(sizes.formats[0].images, images.size());
  EXPECT_EQ(sizes.formats[0].width.min, 1);
  EXPECT_EQ(sizes.formats[0].width.max, 512);
  EXPECT_EQ(sizes.formats[0].width.ranges, (Ranges{{1, 1},
                                                   {7, 1},
                                                   {8, 1},
                                                   {9, 1},
                                                   {15, 1},
                                                   {16, 2},
                                                   {18, 1},
                                                   {240, 1},
                                                   {256, 2},
                                                   {288, 1},
                                                   {480, 1},
                                                   {512, 1}}));
  EXPECT_EQ(sizes.formats[0].height.ranges, (Ranges{{1, images.size()}}));
}

TEST(InputSizes, CountAspectRatiosOfPortraitsAndLandscapes) {
  const InputSizes sizes = sizes_of(
      {{"jpeg", 640, 480}, {"jpeg", 480, 640}, {"jpeg", 100, 100}, {"jpeg", 1920, 1080}, {"jpeg", 1, 4096}});
  const SizeCounts& ratios = sizes.formats[0].aspect_ratio;
  EXPECT_EQ(ratios.ranges, (Ranges{{1.0 / 4096, 1}, {0.75, 1}, {1, 1}, {1.25, 1}, {1.75, 1}}));
  EXPECT_EQ(ratios.min, 1.0 / 4096);
  EXPECT_EQ(ratios.max, 1920.0 / 1080);
}

TEST(InputSizes, CountImagesThatAreSqueezedBeyondTheLimit) {
  const InputSizes sizes =
      sizes_of({{"png", 30, 20, 1.5}, {"png", 30, 20, 1.51}, {"png", 30, 20, 4}, {"png", 30, 20}});
  EXPECT_EQ(sizes.squeezed, 2);
  EXPECT_EQ(sizes.max_squeeze, 4);
  EXPECT_EQ(squeeze_text(sizes),
            "2 images were squeezed or stretched by more than 1.5 to 1, at most by 4 to 1");
  EXPECT_EQ(squeeze_text(sizes_of({{"png", 30, 20, 1.5}})), "");
}

TEST(InputSizes, CountImagesThatLoseMostOfTheirAreaToTheCrop) {
  std::optional<InputSizes> sizes = sizes_of({{"png", 30, 20, 1, 0.5}, {"png", 30, 20, 1, 0.75}});
  EXPECT_EQ(crop_text(*sizes), "1 image lost more than 50 % of the area to the crop, at most 75 %");
  add_sizes(sizes_of({{"png", 30, 20, 1, 0.625}}), sizes);
  EXPECT_EQ(crop_text(*sizes), "2 images lost more than 50 % of the area to the crop, at most 75 %");
  EXPECT_EQ(crop_text(sizes_of({{"png", 30, 20, 1, 0.5}})), "");
}

TEST(InputSizes, CountImagesThatAreSmallerThanTheCrop) {
  std::optional<InputSizes> sizes = sizes_of({{"png", 30, 20, 1, 0, 0.25}, {"png", 30, 20}});
  EXPECT_EQ(padding_text(*sizes),
            "1 of 2 images is smaller than the crop: black borders, at most 25 % of a sample");
  add_sizes(sizes_of({{"png", 30, 20, 1, 0, 0.125}}), sizes);
  EXPECT_EQ(input_notices(*sizes),
            (std::vector<std::string>{
                "2 of 3 images are smaller than the crop: black borders, at most 25 % of a sample"}));
}

TEST(InputSizes, CountImagesWhoseAlphaIsDropped) {
  std::optional<InputSizes> sizes =
      sizes_of({{"png", 30, 20, 1, 0, 0, true}, {"png", 30, 20}, {"png", 30, 20, 1, 0.75}});
  const std::string lost = "alpha, which was dropped: transparent pixels got the colors that they hide";
  EXPECT_EQ(alpha_text(*sizes), "1 image has " + lost);
  add_sizes(sizes_of({{"png", 30, 20, 1, 0, 0, true}}), sizes);
  EXPECT_EQ(input_notices(*sizes), (std::vector<std::string>{crop_text(*sizes), "2 images have " + lost}));
}

TEST(InputSizes, CountFilesWhoseFurtherFramesAreLeftOut) {
  std::optional<InputSizes> sizes =
      sizes_of({{.format = "gif", .width = 30, .height = 20, .has_more_frames = true},
                {.format = "gif", .width = 30, .height = 20}});
  const std::string left_out = " the first page or frame of a file with more, which were left out";
  EXPECT_EQ(frames_text(*sizes), "1 image is" + left_out);
  add_sizes(sizes, sizes);
  EXPECT_EQ(input_notices(*sizes), std::vector<std::string>{"2 images are" + left_out});
}

TEST(InputSizes, NameTheLargestValueOfA16BitRangeThatIsLow) {
  std::optional<InputSizes> sizes = sizes_of({{.format = "png", .width = 30, .height = 20, .max_value = 4095},
                                              {.format = "png", .width = 30, .height = 20, .max_value = 4000},
                                              {.format = "png", .width = 30, .height = 20}});
  EXPECT_EQ(range_text(*sizes),
            "2 images have 16 bits a value and none above 4,095: samples are dark, with 16 of 256 levels; "
            "`scale_from` 0,4095 makes the largest value white");
  add_sizes(sizes_of({{.format = "png", .width = 30, .height = 20, .max_value = kMaxLowValue + 1}}), sizes);
  EXPECT_EQ(sizes->deep, 3);
  EXPECT_EQ(range_text(*sizes), "");
}

TEST(InputSizes, OfPartsAddUpToThoseOfAllImages) {
  const std::vector<InputImage> images{{"png", 30, 20, 1.2}, {"jpeg", 300, 200, 3}, {"webp", 9, 900},
                                       {"jpeg", 10, 12},     {"png", 31, 20},       {"jpeg", 4000, 3000}};
  const InputSizes all = sizes_of(images);
  for (std::size_t cut = 0; cut <= images.size(); ++cut) {
    const auto middle = images.begin() + static_cast<std::ptrdiff_t>(cut);
    std::optional<InputSizes> sum = sizes_of({middle, images.end()});
    add_sizes(sizes_of({images.begin(), middle}), sum);
    ASSERT_EQ(sum->formats.size(), 3);
    for (std::size_t at = 0; at < 3; ++at) {
      EXPECT_EQ(sum->formats[at].format, (std::vector<std::string>{"jpeg", "png", "webp"})[at]);
      EXPECT_EQ(sum->formats[at].images, all.formats[at].images);
      EXPECT_EQ(sum->formats[at].width.ranges, all.formats[at].width.ranges);
      EXPECT_EQ(sum->formats[at].height.min, all.formats[at].height.min);
      EXPECT_EQ(sum->formats[at].height.max, all.formats[at].height.max);
      EXPECT_EQ(sum->formats[at].aspect_ratio.ranges, all.formats[at].aspect_ratio.ranges);
    }
    EXPECT_EQ(sum->squeezed, 1);
    EXPECT_EQ(sum->max_squeeze, 3);
  }
}

TEST(InputSizes, AreNotKnownWhereThoseOfAPartAreNot) {
  std::optional<InputSizes> sum = sizes_of({{"png", 30, 20}});
  add_sizes(std::nullopt, sum);
  EXPECT_FALSE(sum);
  add_sizes(sizes_of({{"png", 30, 20}}), sum);
  EXPECT_FALSE(sum);
}

}  // namespace
}  // namespace chunkhit
