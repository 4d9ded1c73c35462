#include "transform/resample.h"

#include <gtest/gtest.h>

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

TEST(Resampler, GivesTheSameBytesOnEveryInstructionSet) {
  for (const std::uint32_t channels : {1u, 2u, 3u, 4u}) {
    const Image source = random_image(131, 67, channels);
    for (const Filter filter : kFilters) {
      const ResampleRequest request = request_for(filter, source, 50, 90, {3, 5, 40, 70});
      std::vector<std::uint8_t> first;
      for_each_simd_target([&](const char* target) {
        Resampler resampler;
        const auto pixels = resampled(resampler, request, source);
        if (first.empty()) first = pixels;
        EXPECT_EQ(pixels, first) << target << ", " << channels << " channels";
      });
    }
  }
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
