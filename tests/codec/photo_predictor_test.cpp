#include "codec/photo_predictor.h"

#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <string>

#include "base/random.h"
#include "support/simd_targets.h"
#include "types/enum_names.h"

namespace chunkhit {
namespace {

/// The residuals by the words of schemas/codecs.md, value by value.
ByteBuffer predict_by_the_page(Bytes samples, const SampleShape& shape) {
  const std::size_t height = shape.height, width = shape.width, channels = shape.channels;
  const auto value = [&](std::size_t s, std::size_t c, std::ptrdiff_t y, std::ptrdiff_t x) -> int {
    if (y < 0 || x < 0) return 0;
    const std::size_t at = static_cast<std::size_t>(y) * width + static_cast<std::size_t>(x);
    const std::uint8_t* sample = samples.data() + s * shape.byte_count();
    return shape.layout == Layout::nhwc ? sample[at * channels + c] : sample[c * height * width + at];
  };
  const auto plane = [&](std::size_t s, std::size_t c, std::ptrdiff_t y, std::ptrdiff_t x) {
    return value(s, c, y, x) - (channels == 3 && c != 1 ? value(s, 1, y, x) : 0);
  };
  ByteBuffer residuals;
  for (std::size_t s = 0; s < samples.size() / shape.byte_count(); ++s)
    for (std::size_t c = 0; c < channels; ++c)
      for (std::ptrdiff_t y = 0; y < static_cast<std::ptrdiff_t>(height); ++y)
        for (std::ptrdiff_t x = 0; x < static_cast<std::ptrdiff_t>(width); ++x)
          residuals.push_back(
              static_cast<std::uint8_t>(plane(s, c, y, x) - (plane(s, c, y, x - 1) + plane(s, c, y - 1, x) -
                                                             plane(s, c, y - 1, x - 1))));
  return residuals;
}

ByteBuffer noise(std::uint64_t bytes) {
  ByteBuffer buffer(bytes);
  for (std::uint64_t i = 0; i < bytes; ++i) buffer[i] = static_cast<std::uint8_t>(mix_bits(i));
  return buffer;
}

std::string name_of(const SampleShape& shape) {
  return std::to_string(shape.height) + "x" + std::to_string(shape.width) + "x" +
         std::to_string(shape.channels) + " " + name_of(shape.layout);
}

/// Shapes around the widths of vectors: narrower, as wide, one more, several and a rest.
std::vector<SampleShape> shapes() {
  std::vector<SampleShape> shapes;
  for (const std::uint32_t width : {1u, 2u, 5u, 10u, 11u, 15u, 16u, 17u, 31u, 32u, 33u, 48u, 64u, 65u, 100u})
    for (const std::uint32_t channels : {1u, 2u, 3u, 4u, 5u})
      for (const Layout layout : {Layout::nhwc, Layout::nchw})
        for (const std::uint32_t height : {1u, 3u}) shapes.push_back({height, width, channels, layout});
  return shapes;
}

TEST(PhotoPredictor, GivesTheResidualsOfThePageOnEveryInstructionSet) {
  for_each_simd_target([](const char* target) {
    for (const SampleShape& shape : shapes()) {
      const ByteBuffer samples = noise(shape.byte_count() * 3);
      ByteBuffer residuals(samples.size());
      predict_photo(samples, shape, residuals);
      ASSERT_EQ(residuals, predict_by_the_page(samples, shape)) << target << " " << name_of(shape);
    }
  });
}

TEST(PhotoPredictor, RestoresItsSamplesOnEveryInstructionSet) {
  for_each_simd_target([](const char* target) {
    for (const SampleShape& shape : shapes()) {
      const ByteBuffer samples = noise(shape.byte_count() * 3);
      const ByteBuffer residuals = predict_by_the_page(samples, shape);
      ByteBuffer restored(samples.size());
      restore_photo(residuals, shape, restored);
      ASSERT_EQ(restored, samples) << target << " " << name_of(shape);
    }
  });
}

TEST(PhotoPredictor, LeavesNothingOfAFlatGreySlopeButItsEdges) {
  const SampleShape shape{3, 4, 3, Layout::nhwc};
  ByteBuffer samples;
  for (int y = 0; y < 3; ++y)
    for (int x = 0; x < 4; ++x)
      samples.insert(samples.end(), 3, static_cast<std::uint8_t>(10 + 5 * y + 2 * x));
  ByteBuffer residuals(samples.size());
  predict_photo(samples, shape, residuals);
  const ByteBuffer expected{0,  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,   // R − G
                            10, 2, 2, 2, 5, 0, 0, 0, 5, 0, 0, 0,   // G
                            0,  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};  // B − G
  EXPECT_EQ(residuals, expected);
}

TEST(PhotoPredictor, GivesTheSameResidualsForBothLayouts) {
  const SampleShape pixels{5, 21, 3, Layout::nhwc};
  const SampleShape planes{5, 21, 3, Layout::nchw};
  const ByteBuffer samples = noise(pixels.byte_count());
  ByteBuffer apart(samples.size());
  for (std::size_t at = 0; at < samples.size() / 3; ++at)
    for (std::size_t c = 0; c < 3; ++c) apart[c * samples.size() / 3 + at] = samples[at * 3 + c];
  ByteBuffer of_pixels(samples.size());
  ByteBuffer of_planes(samples.size());
  predict_photo(samples, pixels, of_pixels);
  predict_photo(apart, planes, of_planes);
  EXPECT_EQ(of_pixels, of_planes);
}

}  // namespace
}  // namespace chunkhit
