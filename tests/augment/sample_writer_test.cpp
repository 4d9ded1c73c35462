#include "augment/sample_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "chunkhit/error.h"
#include "support/depth.h"
#include "support/simd_targets.h"
#include "types/enum_names.h"

namespace chunkhit {
namespace {

ByteBuffer noise(std::uint64_t bytes) {
  ByteBuffer buffer(bytes);
  for (std::uint64_t i = 0; i < bytes; ++i) buffer[i] = static_cast<std::uint8_t>(mix_bits(i + 1));
  return buffer;
}

std::size_t value_index(const SampleShape& shape, std::size_t y, std::size_t x, std::size_t c) {
  return shape.layout == Layout::nhwc ? (y * shape.width + x) * shape.channels + c
                                      : (c * shape.height + y) * shape.width + x;
}

// Bits of a float of 16 bits, of which `fraction_bits` are a fraction, that is nearest to a number.
std::uint16_t nearest_half(float value, int fraction_bits) {
  const int max_exponent = (1 << (14 - fraction_bits)) - 1, sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::fabs(static_cast<double>(value));
  const auto infinity = static_cast<std::uint16_t>(sign | (2 * max_exponent + 1) << fraction_bits);
  if (magnitude == 0) return static_cast<std::uint16_t>(sign);
  if (std::isinf(value)) return infinity;
  int exponent = 0;
  static_cast<void>(std::frexp(magnitude, &exponent));
  const int last = std::max(exponent - 1, 1 - max_exponent) - fraction_bits;  // worth of the last bit: 2^last
  const double steps = std::nearbyint(std::ldexp(magnitude, -last));
  const double rounded = std::ldexp(steps, last);
  if (rounded >= std::ldexp(1, max_exponent + 1)) return infinity;
  // Bits count the numbers from 0 on: those below 2^(1 - max_exponent), then as many for each power of two.
  const int power = last + fraction_bits + max_exponent - 1;
  return static_cast<std::uint16_t>(sign | (static_cast<int>(steps) + (power << fraction_bits)));
}

// Where the pixel (y, x) of the written sample is in the crop, by numpy's rot90, flipud and fliplr undone in
// turn.
std::pair<std::size_t, std::size_t> place_in_crop(const SampleShape& written, const Crop& crop, std::size_t y,
                                                  std::size_t x) {
  if (crop.transposed) std::swap(y, x);
  if (crop.upside_down) y = written.height - 1 - y;
  if (crop.flipped) x = written.width - 1 - x;
  return {y, x};
}

ByteBuffer bytes_of_values(const std::vector<float>& floats, Dtype dtype) {
  if (dtype == Dtype::float32) {
    const Bytes bytes = bytes_of(floats);
    return {bytes.begin(), bytes.end()};
  }
  std::vector<std::uint16_t> halves;
  for (const float value : floats) halves.push_back(nearest_half(value, dtype == Dtype::float16 ? 10 : 7));
  const Bytes bytes = bytes_of(halves);
  return {bytes.begin(), bytes.end()};
}

// The written bytes by the words of the header, value by value.
ByteBuffer write_by_the_words(const SampleFormat& format, const ByteBuffer& stored, const SampleUse& use) {
  const RandomCrop random_crop(format.stored, format.augment);
  const Crop cut = random_crop(use);
  const SampleShape written{random_crop.height(), random_crop.width(), format.stored.channels, format.layout};
  std::vector<std::uint8_t> values(written.byte_count());
  std::vector<float> floats(values.size());
  for (std::size_t y = 0; y < written.height; ++y)
    for (std::size_t x = 0; x < written.width; ++x)
      for (std::size_t c = 0; c < written.channels; ++c) {
        const auto [crop_y, crop_x] = place_in_crop(written, cut, y, x);
        const std::int64_t row = cut.top + static_cast<std::int64_t>(crop_y);
        const std::int64_t column = cut.left + static_cast<std::int64_t>(crop_x);
        const bool inside =
            row >= 0 && row < format.stored.height && column >= 0 && column < format.stored.width;
        const std::uint8_t value = inside ? stored[value_index(format.stored, static_cast<std::size_t>(row),
                                                               static_cast<std::size_t>(column), c)]
                                          : 0;
        const std::size_t at = value_index(written, y, x, c);
        values[at] = value;
        if (format.dtype != Dtype::uint8)
          floats[at] =
              (static_cast<float>(value) / 255.0f - format.normalize.mean[c]) / format.normalize.std[c];
      }
  if (format.dtype == Dtype::uint8) return {values.begin(), values.end()};
  return bytes_of_values(floats, format.dtype);
}

NormalizeSpec normalize_of(std::uint32_t channels) {
  NormalizeSpec spec;
  for (std::uint32_t c = 0; c < channels; ++c) {
    spec.mean.push_back(0.485f - 0.03f * static_cast<float>(c));
    spec.std.push_back(0.229f + 0.017f * static_cast<float>(c));
  }
  return spec;
}

std::string name_of(const SampleFormat& format) {
  const SampleShape& shape = format.stored;
  const AugmentSpec& spec = format.augment;
  return std::to_string(shape.height) + "x" + std::to_string(shape.width) + "x" +
         std::to_string(shape.channels) + " " + name_of(shape.layout) + " to " + name_of(format.layout) +
         " " + name_of(format.dtype) + " crop " + std::to_string(spec.crop_height) + "x" +
         std::to_string(spec.crop_width) + " padding " + std::to_string(spec.crop_padding) +
         (spec.flip_vertical > 0 ? " vertical" : "") + (spec.quarter_turns ? " turns" : "");
}

// No crop; a smaller one; one of the padded image; one that may miss the image; for odd and even positions.
std::vector<AugmentSpec> augments(const SampleShape& shape) {
  const std::uint32_t height = shape.height, width = shape.width;
  std::vector<AugmentSpec> specs;
  for (const double flip : {0.0, 0.5}) {
    specs.push_back({flip, 0, 0, false, 0});
    specs.push_back({flip, (height + 1) / 2, width > 3 ? width - 3 : width, false, 0});
    specs.push_back({flip, (height + 1) / 2, (width + 1) / 2, true, 0});
    specs.push_back({flip, height, width, true, 4});
    specs.push_back({flip, 1, 2, true, 3});
    specs.push_back({flip, height + 3, width + 4, false, 2});
    specs.push_back({flip, height, (width + 1) / 2, true, 0});
    specs.push_back({flip, (height + 1) / 2, width, true, 0});
  }
  const std::size_t unturned = specs.size();
  for (std::size_t i = 0; i < unturned; ++i) {
    specs.push_back(specs[i]);
    specs.back().flip_vertical = 0.5;
  }
  const std::uint32_t side = std::min(height, width);
  for (const AugmentSpec& square :
       {AugmentSpec{0.5, side, side, true, 2}, AugmentSpec{0, side, side, false, 0},
        AugmentSpec{0.5, side + 3, side + 3, false, 0}}) {
    specs.push_back(square);
    specs.back().quarter_turns = true;
    specs.back().flip_vertical = square.flip_horizontal / 2;
  }
  if (height == width) specs.push_back({.flip_vertical = 0.5, .quarter_turns = true});
  return specs;
}

std::vector<SampleFormat> formats() {
  std::vector<SampleFormat> formats;
  for (const auto& [height, width] : std::vector<std::pair<std::uint32_t, std::uint32_t>>{
           {1, 1}, {3, 1}, {1, 5}, {5, 7}, {4, 16}, {3, 17}, {2, 33}, {9, 64}, {33, 33}, {70, 101}})
    for (const std::uint32_t channels : {1u, 2u, 3u, 4u, 5u, 18u})
      for (const Layout stored : {Layout::nhwc, Layout::nchw})
        for (const Layout layout : {Layout::nhwc, Layout::nchw})
          for (const Dtype dtype : {Dtype::uint8, Dtype::float32, Dtype::float16, Dtype::bfloat16})
            for (const AugmentSpec& augment : augments({height, width, channels, stored}))
              formats.push_back(
                  {{height, width, channels, stored}, augment, dtype, layout, normalize_of(channels)});
  return formats;
}

// Written between bytes that must stay as they are.
ByteBuffer write(const SampleWriter& writer, const ByteBuffer& stored, const SampleUse& use) {
  ByteBuffer out(writer.sample_bytes() + 8, 0xa5);
  writer.write(stored.data(), use, out.data() + 4);
  for (const std::size_t i : {0, 1, 2, 3}) {
    EXPECT_EQ(out[i], 0xa5);
    EXPECT_EQ(out[out.size() - 1 - i], 0xa5);
  }
  return {out.begin() + 4, out.end() - 4};
}

TEST(SampleWriter, WritesWhatTheHeaderSaysOnEveryInstructionSet) {
  const std::vector<SampleFormat> all = formats();
  for_each_simd_target([&](const char* target) {
    for (std::size_t i = 0; i < all.size(); i += sweep_stride(31)) {
      const SampleFormat& format = all[i];
      const SampleWriter writer(format);
      const ByteBuffer stored = noise(format.stored.byte_count());
      for (std::uint64_t sample = 0; sample < 4; ++sample) {
        const SampleUse use{7, 1, sample, 0};
        ASSERT_EQ(write(writer, stored, use), write_by_the_words(format, stored, use))
            << target << " " << name_of(format) << " sample " << sample;
      }
    }
  });
}

TEST(SampleWriter, TellsTheShapeAndBytesOfASample) {
  SampleFormat format{{10, 12, 3, Layout::nhwc}, {}, Dtype::float32, Layout::nchw, normalize_of(3)};
  format.augment.crop_height = 4;
  format.augment.crop_width = 5;
  const SampleWriter writer(format);
  EXPECT_EQ(writer.shape(), (BatchShape{1, 4, 5, 3, Layout::nchw}));
  EXPECT_EQ(writer.sample_bytes(), 4u * 5 * 3 * sizeof(float));
  EXPECT_FALSE(writer.copies());
}

TEST(SampleWriter, CopiesWhereNothingIsToBeChanged) {
  const SampleShape stored{10, 12, 3, Layout::nhwc};
  const auto copies = [&](const AugmentSpec& augment, Layout layout) {
    return SampleWriter({stored, augment, Dtype::uint8, layout, {}}).copies();
  };
  EXPECT_TRUE(copies({}, Layout::nhwc));
  EXPECT_TRUE(copies({0, 10, 12, true, 0}, Layout::nhwc));
  EXPECT_FALSE(copies({}, Layout::nchw));
  EXPECT_FALSE(copies({0.01, 0, 0, false, 0}, Layout::nhwc));
  EXPECT_FALSE(copies({0, 10, 12, true, 1}, Layout::nhwc));
  EXPECT_FALSE(copies({0, 9, 12, false, 0}, Layout::nhwc));
  EXPECT_FALSE(copies({.flip_vertical = 0.01}, Layout::nhwc));
  EXPECT_FALSE(copies({.crop_height = 10, .crop_width = 10, .quarter_turns = true}, Layout::nhwc));
}

TEST(SampleWriter, TurnsAsOftenByEachQuarter) {
  const SampleShape stored{2, 2, 1, Layout::nhwc};
  const SampleWriter writer({stored, {.quarter_turns = true}, Dtype::uint8, Layout::nhwc, {}});
  const std::vector<ByteBuffer> turned{{1, 2, 3, 4}, {2, 4, 1, 3}, {4, 3, 2, 1}, {3, 1, 4, 2}};
  std::vector<int> counts(4);
  for (std::uint64_t sample = 0; sample < 4000; ++sample) {
    const auto found = std::ranges::find(turned, write(writer, turned[0], {7, 1, sample, 0}));
    ASSERT_NE(found, turned.end());
    ++counts[static_cast<std::size_t>(found - turned.begin())];
  }
  for (const int count : counts)
    EXPECT_NEAR(count, 1000, 110);  // four standard deviations; the seed is fixed
}

TEST(SampleWriter, RoundsFloatsTooLargeForAHalfToInfinity) {
  for (const Dtype dtype : {Dtype::float16, Dtype::bfloat16})
    for (const float std : {1e-5f, 1e-7f, 1e-38f, -3e-45f, 3e38f, 1e7f}) {
      const SampleFormat format{{1, 256, 1, Layout::nhwc}, {}, dtype, Layout::nhwc, {{0.5f}, {std}}};
      ByteBuffer stored(256);
      for (std::size_t i = 0; i < 256; ++i) stored[i] = static_cast<std::uint8_t>(i);
      ASSERT_EQ(write(SampleWriter(format), stored, {}), write_by_the_words(format, stored, {}))
          << name_of(dtype) << " " << std;
    }
}

TEST(SampleWriter, GivesTorchvisionsBitsForAllBytes) {
  const SampleFormat format{
      {1, 256, 1, Layout::nhwc}, {}, Dtype::float32, Layout::nhwc, {{0.2860f}, {0.3530f}}};
  ByteBuffer stored(256), out(256 * sizeof(float));
  for (std::size_t i = 0; i < 256; ++i) stored[i] = static_cast<std::uint8_t>(i);
  SampleWriter(format).write(stored.data(), {}, out.data());
  const auto bits = [&](std::size_t i) { return load_little<std::uint32_t>(&out[i * sizeof(float)]); };
  // ToTensor and Normalize((0.2860,), (0.3530,)) of torchvision's arithmetic in numpy.
  EXPECT_EQ(bits(0), 0xbf4f6929u);
  EXPECT_EQ(bits(1), 0xbf4c911bu);
  EXPECT_EQ(bits(73), 0x3a4bdaf9u);
  EXPECT_EQ(bits(128), 0x3f1c9e13u);
  EXPECT_EQ(bits(255), 0x4001734fu);
}

TEST(SampleWriter, DividesWhereMultiplyingWouldGiveOtherBits) {
  for (const float std : {1e-38f, 1e-45f, 3e38f, -0.5f, 1.0f, 0x1.fffffep-1f}) {
    for (const float mean : {0.0f, -3e38f, 1e-40f, 0.5f}) {
      const SampleFormat format{{1, 256, 1, Layout::nhwc}, {}, Dtype::float32, Layout::nhwc, {{mean}, {std}}};
      ByteBuffer stored(256);
      for (std::size_t i = 0; i < 256; ++i) stored[i] = static_cast<std::uint8_t>(i);
      ASSERT_EQ(write(SampleWriter(format), stored, {}), write_by_the_words(format, stored, {}))
          << mean << " " << std;
    }
  }
}

std::string refusal(const SampleFormat& format) {
  try {
    const SampleWriter writer(format);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    return error.what();
  }
  return "accepted";
}

TEST(SampleWriter, RefusesFormatsThatMakeNoSenseByName) {
  const SampleShape stored{10, 12, 3, Layout::nhwc};
  const auto with_augment = [&](const AugmentSpec& augment) {
    return refusal({stored, augment, Dtype::uint8, Layout::nhwc, {}});
  };
  EXPECT_EQ(with_augment({1.5, 0, 0, false, 0}), "augment.flip_horizontal: must be from 0 to 1");
  EXPECT_EQ(with_augment({-0.1, 0, 0, false, 0}), "augment.flip_horizontal: must be from 0 to 1");
  EXPECT_EQ(with_augment({0, 5, 0, false, 0}), "augment.crop_height: goes with crop_width, both or neither");
  EXPECT_EQ(with_augment({0, 11, 5, true, 0}), "augment.crop_height: 11 of 10 pixels");
  EXPECT_EQ(with_augment({0, 5, 17, true, 2}), "augment.crop_width: 17 of 16 pixels");
  EXPECT_EQ(with_augment({0, 0, 0, true, 0}), "augment.random_crop: needs crop_height and crop_width");
  EXPECT_EQ(with_augment({0, 0, 0, false, 1}), "augment.crop_padding: needs crop_height and crop_width");
  EXPECT_EQ(with_augment({0, 5, 5, false, UINT32_MAX}), "augment.crop_padding: must be at most 16777216");

  EXPECT_EQ(with_augment({.flip_vertical = 1.5}), "augment.flip_vertical: must be from 0 to 1");
  const std::string turns =
      "augment.quarter_turns: samples of 10 x 12 pixels, expected square ones: crop_height and crop_width, "
      "or resized_crop, make them so";
  EXPECT_EQ(with_augment({.quarter_turns = true}), turns);
  EXPECT_EQ(with_augment({.crop_height = 10, .crop_width = 10, .quarter_turns = true}), "accepted");
  EXPECT_EQ(with_augment({.resized_crop = {.height = 8, .width = 8}, .quarter_turns = true}), "accepted");
  EXPECT_EQ(with_augment({.resized_crop = {.height = 10, .width = 12}, .quarter_turns = true}), turns);

  const auto with_normalize = [&](const NormalizeSpec& normalize) {
    return refusal({stored, {}, Dtype::float32, Layout::nhwc, normalize});
  };
  EXPECT_EQ(with_normalize({{0.5f}, {0.5f}}), "normalize.mean: 1 values for 3 channels");
  EXPECT_EQ(with_normalize({{0, 0, 0}, {1, 1}}), "normalize.std: 2 values for 3 channels");
  EXPECT_EQ(with_normalize({{0, 0, 0}, {1, 0, 1}}), "normalize.std: must not be 0");
  EXPECT_EQ(with_normalize({{0, 0, 1.0f / 0.0f}, {1, 1, 1}}), "normalize.mean: must be finite");
  EXPECT_EQ(refusal({{0, 5, 3, Layout::nhwc}, {}, Dtype::uint8, Layout::nhwc, {}}),
            "samples without pixels cannot be written");
}

}  // namespace
}  // namespace chunkhit
