#include "transform/resample.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "base/random.h"
#include "support/simd_targets.h"
#include "types/enum_names.h"

namespace chunkhit {
namespace {

constexpr std::array kFilters{Filter::bilinear, Filter::bicubic, Filter::lanczos,
                              Filter::box,      Filter::hamming, Filter::nearest};

Image random_image(std::uint32_t width, std::uint32_t height, std::uint32_t channels) {
  Image image;
  image.reshape(width, height, channels);
  for (std::size_t i = 0; i < image.pixels.size(); ++i)
    image.pixels[i] = static_cast<std::uint8_t>(random_bits(3, Purpose::pack_order, i));
  return image;
}

ResampleRequest request_for(Filter filter, const Image& source, std::uint32_t width, std::uint32_t height,
                            Rect window) {
  return {filter,
          source.width,
          source.height,
          static_cast<float>(source.width),
          static_cast<float>(source.height),
          width,
          height,
          window};
}

// Hands over a buffer of exactly the region, so that a sanitizer sees every step beyond it.
std::vector<std::uint8_t> resampled(Resampler& resampler, const ResampleRequest& request,
                                    const Image& source) {
  const Rect region = source_region(request);
  Image part;
  part.reshape(region.width, region.height, source.channels);
  for (std::uint32_t y = 0; y < region.height; ++y)
    std::memcpy(part.row(y), source.row(region.y + y) + std::size_t{region.x} * source.channels,
                part.row_bytes());
  const std::size_t row_bytes = std::size_t{request.window.width} * source.channels;
  std::vector<std::uint8_t> out(row_bytes * request.window.height);
  resampler.resample(request, part.view(), out.data(), row_bytes);
  return out;
}

TEST(Resampler, GivesAWindowEqualToThatPartOfTheWhole) {
  const Image source = random_image(90, 75, 3);
  constexpr Rect kWindow{11, 7, 23, 19};
  Resampler resampler;
  for (const Filter filter : kFilters) {
    const auto whole = resampled(resampler, request_for(filter, source, 61, 88, {0, 0, 61, 88}), source);
    const auto window = resampled(resampler, request_for(filter, source, 61, 88, kWindow), source);
    for (std::uint32_t y = 0; y < kWindow.height; ++y)
      ASSERT_EQ(0, std::memcmp(&window[y * kWindow.width * 3u],
                               &whole[((kWindow.y + y) * 61 + kWindow.x) * 3], kWindow.width * 3))
          << name_of(filter) << ", row " << y;
  }
}

// Pillow's loop along one axis, of which a step goes from a pixel to the next, and from an output pixel.
void mix_plainly(Filter filter, const AxisRequest& request, std::uint32_t first, const std::uint8_t* in,
                 std::size_t step, std::uint8_t* out, std::size_t out_step) {
  const AxisWeights axis = axis_weights(filter, request);
  for (std::uint32_t i = 0; i < axis.size(); ++i) {
    std::int64_t sum = 1 << (kWeightBits - 1);
    for (std::uint32_t tap = 0; tap < axis.count[i] && !axis.copies; ++tap)
      sum += std::int64_t{in[(axis.first[i] + tap - first) * step]} * axis.weights[i * axis.stride + tap];
    out[i * out_step] = axis.copies
                            ? in[(axis.first[i] - first) * step]
                            : static_cast<std::uint8_t>(std::clamp<std::int64_t>(sum >> kWeightBits, 0, 255));
  }
}

std::vector<std::uint8_t> plainly_resampled(const ResampleRequest& request, const Image& source) {
  const Rect region = source_region(request);
  const std::size_t channels = source.channels;
  const std::size_t row_bytes = request.window.width * channels;
  std::vector<std::uint8_t> rows(region.height * row_bytes);
  std::vector<std::uint8_t> out(request.window.height * row_bytes);
  for (std::uint32_t y = 0; y < region.height; ++y)
    for (std::size_t channel = 0; channel < channels; ++channel)
      mix_plainly(request.filter,
                  {request.source_width, request.box_width, request.resized_width, request.window.x,
                   request.window.width, request.box_x, request.flipped},
                  0, source.row(region.y + y) + channel, channels, &rows[y * row_bytes + channel], channels);
  for (std::size_t byte = 0; byte < row_bytes; ++byte)
    mix_plainly(request.filter,
                {request.source_height, request.box_height, request.resized_height, request.window.y,
                 request.window.height, request.box_y},
                region.y, &rows[byte], row_bytes, &out[byte], row_bytes);
  return out;
}

struct Sizes {
  std::uint32_t width, height;  // of the source
  std::uint32_t resized_width, resized_height;
  Rect window;
};

// Sizes that take each way: few and many source pixels an output pixel, rows too short for a vector, windows
// within a vector, last rows and bytes that no vector fits.
constexpr std::array<Sizes, 12> kSizes{{{131, 67, 50, 90, {3, 5, 40, 70}},
                                        {67, 9, 224, 31, {0, 0, 224, 31}},
                                        {64, 5, 63, 3, {0, 0, 63, 3}},
                                        {300, 31, 224, 28, {0, 0, 224, 28}},
                                        {211, 40, 71, 13, {17, 2, 33, 9}},
                                        {500, 30, 40, 4, {0, 0, 40, 4}},
                                        {500, 12, 16, 12, {0, 0, 16, 12}},
                                        {90, 50, 90, 20, {0, 0, 90, 20}},
                                        {3, 2, 40, 40, {1, 1, 38, 38}},
                                        {1, 1, 17, 5, {0, 0, 17, 5}},
                                        {40, 40, 1, 1, {0, 0, 1, 1}},
                                        {4000, 3, 7, 2, {0, 0, 7, 2}}}};

TEST(Resampler, GivesTheSameBytesOnEveryInstructionSet) {
  for (const Sizes& sizes : kSizes) {
    for (const std::uint32_t channels : {1u, 2u, 3u, 4u}) {
      const Image source = random_image(sizes.width, sizes.height, channels);
      for (const Filter filter : kFilters) {
        for (const bool flipped : {false, true}) {
          ResampleRequest request =
              request_for(filter, source, sizes.resized_width, sizes.resized_height, sizes.window);
          request.flipped = flipped;
          const auto expected = plainly_resampled(request, source);
          for_each_simd_target([&](const char* target) {
            Resampler resampler;
            ASSERT_EQ(resampled(resampler, request, source), expected)
                << target << ", " << channels << " channels, " << sizes.width << " x " << sizes.height
                << " to " << sizes.resized_width << " x " << sizes.resized_height << ", " << name_of(filter)
                << (flipped ? ", flipped" : "");
          });
        }
      }
    }
  }
}

TEST(Resampler, GivesTheSameBytesForABoxOnEveryInstructionSet) {
  const Image source = random_image(210, 150, 3);
  for (const Filter filter : kFilters) {
    ResampleRequest request = request_for(filter, source, 112, 112, {5, 0, 100, 112});
    request.box_x = 20.5f;
    request.box_width = 160.25f;
    request.box_y = 9.75f;
    request.box_height = 140;
    const auto expected = plainly_resampled(request, source);
    for_each_simd_target([&](const char* target) {
      Resampler resampler;
      ASSERT_EQ(resampled(resampler, request, source), expected) << target << ", " << name_of(filter);
    });
  }
}

TEST(Resampler, NoticesThatTheChannelsChanged) {
  const Image color = random_image(90, 48, 3);
  const Image gray = random_image(90, 48, 1);
  const ResampleRequest request = request_for(Filter::bilinear, color, 70, 30, {0, 0, 70, 30});
  Resampler used;
  (void)resampled(used, request, color);
  EXPECT_EQ(resampled(used, request, gray), plainly_resampled(request, gray));
}

TEST(Resampler, KeepsAnUnchangedAxis) {
  Image source;
  source.reshape(40, 4, 1);
  for (std::uint32_t y = 0; y < 4; ++y) std::memset(source.row(y), static_cast<int>(60 * y), 40);
  Resampler resampler;
  const auto narrow = resampled(resampler, request_for(Filter::lanczos, source, 9, 4, {0, 0, 9, 4}), source);
  for (std::size_t i = 0; i < narrow.size(); ++i) EXPECT_EQ(narrow[i], 60 * (i / 9));
}

TEST(Resampler, CopiesWhereNothingChanges) {
  const Image source = random_image(20, 10, 3);
  Resampler resampler;
  const auto copy = resampled(resampler, request_for(Filter::bicubic, source, 20, 10, {4, 2, 9, 5}), source);
  for (std::uint32_t y = 0; y < 5; ++y) EXPECT_EQ(0, std::memcmp(&copy[y * 27u], source.row(2 + y) + 12, 27));
}

TEST(Resampler, LeavesBytesBetweenRowsAlone) {
  const Image source = random_image(64, 64, 3);
  for (const Filter filter : {Filter::bilinear, Filter::nearest}) {
    for (const std::uint32_t height : {32u, 64u}) {  // two passes, and one
      const ResampleRequest request = request_for(filter, source, 32, height, {0, 0, 32, height});
      std::vector<std::uint8_t> out(std::size_t{height} * 100, 77);
      Resampler().resample(request, source.view(), out.data(), 100);
      for (std::size_t i = 0; i < out.size(); ++i) ASSERT_EQ(i % 100 >= 96 ? out[i] : 77, 77) << "byte " << i;
    }
  }
}

TEST(Resampler, NoticesThatTheRequestChanged) {
  const Image source = random_image(48, 48, 1);
  const ResampleRequest small = request_for(Filter::bilinear, source, 16, 16, {0, 0, 16, 16});
  const ResampleRequest other = request_for(Filter::box, source, 16, 16, {0, 0, 16, 16});
  Resampler used, fresh;
  (void)resampled(used, small, source);
  EXPECT_EQ(resampled(used, other, source), resampled(fresh, other, source));
}

}  // namespace
}  // namespace chunkhit
