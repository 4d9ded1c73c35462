#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "augment/random_crop.h"
#include "augment/sample_writer.h"
#include "base/random.h"
#include "chunkhit/cuda_rows.h"

// What the kernels of <chunkhit/cuda_kernels.h> do with a row, on the CPU, beside what the loaders do.
namespace chunkhit {
namespace {

BatchShape batch_shape(const SampleShape& shape, std::size_t batch) {
  return {batch, shape.height, shape.width, shape.channels, shape.layout};
}

std::vector<std::uint8_t> noise(std::size_t bytes) {
  std::vector<std::uint8_t> buffer(bytes);
  for (std::size_t i = 0; i < bytes; ++i) buffer[i] = static_cast<std::uint8_t>(mix_bits(i + 1));
  return buffer;
}

NormalizeSpec normalize_of(std::uint32_t channels) {
  NormalizeSpec spec;
  for (std::uint32_t c = 0; c < channels; ++c) {
    spec.mean.push_back(0.485f - 0.03f * static_cast<float>(c));
    spec.std.push_back(0.229f + 0.017f * static_cast<float>(c));
  }
  return spec;
}

std::vector<AugmentSpec> augments(const SampleShape& shape) {
  const std::uint32_t height = shape.height, width = shape.width;
  return {{},
          {0.5, 0, 0, false, 0},
          {0.3, (height + 1) / 2, (width + 1) / 2, false, 0},
          {0.5, (height + 1) / 2, (width + 1) / 2, true, 0},
          {0.5, height, width, true, 4},
          {0.5, 1, 2, true, 3},
          {0, height + 3, width + 4, false, 2},
          {0.5, height + 5, width + 2, false, 0},
          {.flip_vertical = 0.5},
          {.flip_horizontal = 0.5,
           .crop_height = std::min(height, width),
           .crop_width = std::min(height, width),
           .random_crop = true,
           .crop_padding = 2,
           .flip_vertical = 0.3,
           .quarter_turns = true}};
}

constexpr std::size_t kBatch = 6;

/// Writes a batch as so many lanes do, one after the other.
template <class Value>
std::vector<Value> written_by_rows(const SampleFormat& format, const std::vector<std::uint8_t>& stored,
                                   const std::vector<cuda::Crop>& crops, const BatchShape& shape,
                                   std::uint32_t lane_count) {
  std::vector<Value> written(kBatch * cuda::image_values(shape), Value(77));
  const cuda::ImageConversion<Value> images{stored.data(),
                                            batch_shape(format.stored, kBatch),
                                            crops.data(),
                                            format.normalize.mean.data(),
                                            format.normalize.std.data(),
                                            written.data(),
                                            shape,
                                            format.padding};
  for (std::size_t row = 0; row < kBatch * shape.height; ++row)
    for (std::uint32_t lane = 0; lane < lane_count; ++lane)
      cuda::ImageRow<Value>(images, row).write(lane, lane_count);
  return written;
}

template <class Value>
void expect_loaders_batch(const SampleFormat& format, const std::string& name) {
  const SampleWriter writer(format);
  const std::size_t stored_bytes = format.stored.byte_count();
  const std::vector<std::uint8_t> stored = noise(kBatch * stored_bytes);
  std::vector<cuda::Crop> crops;
  std::vector<Value> expected(kBatch * writer.sample_bytes() / sizeof(Value));
  for (std::size_t sample = 0; sample < kBatch; ++sample) {
    writer.write(stored.data() + sample * stored_bytes, {7, 1, sample, 2},
                 reinterpret_cast<std::uint8_t*>(expected.data()) + sample * writer.sample_bytes());
    crops.push_back(cuda::choose_crop(batch_shape(format.stored, 1), format.augment, {7, 1, sample, 2}));
  }
  BatchShape shape = writer.shape();
  shape.batch = kBatch;
  for (const std::uint32_t lane_count : {1u, 5u, 32u}) {
    const std::vector<Value> found = written_by_rows<Value>(format, stored, crops, shape, lane_count);
    // Bits, because -0 and 0 are equal floats.
    ASSERT_EQ(std::memcmp(found.data(), expected.data(), expected.size() * sizeof(Value)), 0)
        << name << ", lanes " << lane_count;
  }
}

TEST(DeviceRows, AreTheLoadersBitForBit) {
  for (const auto& [height, width] :
       std::vector<std::pair<std::uint32_t, std::uint32_t>>{{1, 1}, {3, 1}, {5, 7}, {2, 33}, {9, 64}})
    for (const std::uint32_t channels : {1u, 3u, 4u, 5u, 40u})
      for (const Layout stored : {Layout::nhwc, Layout::nchw})
        for (const Layout layout : {Layout::nhwc, Layout::nchw})
          for (const AugmentSpec& augment : augments({height, width, channels, stored})) {
            const std::string name = std::to_string(height) + "x" + std::to_string(width) + "x" +
                                     std::to_string(channels) + " padding " +
                                     std::to_string(augment.crop_padding);
            SampleFormat format{{height, width, channels, stored}, augment, Dtype::uint8, layout, {}};
            expect_loaders_batch<std::uint8_t>(format, name + " u8");
            format.padding = 255;
            expect_loaders_batch<std::uint8_t>(format, name + " padded with 255");
            format.padding = 0;
            format.dtype = Dtype::float32;
            format.normalize = normalize_of(channels);
            expect_loaders_batch<float>(format, name + " f32");
          }
}

TEST(DeviceRows, NormalizeEveryByteAsTheLoadersDo) {
  for (const auto& [mean, std] : std::vector<std::pair<float, float>>{
           {0.485f, 0.229f}, {0.2860f, 0.3530f}, {0.5f, 0.5f}, {-3.25f, 1e-3f}, {1, -7.7f}}) {
    const SampleFormat format{{1, 256, 1, Layout::nhwc}, {}, Dtype::float32, Layout::nhwc, {{mean}, {std}}};
    std::vector<std::uint8_t> stored(256);
    for (std::size_t i = 0; i < 256; ++i) stored[i] = static_cast<std::uint8_t>(i);
    std::vector<float> expected(256);
    SampleWriter(format).write(stored.data(), {}, reinterpret_cast<std::uint8_t*>(expected.data()));
    for (std::size_t i = 0; i < 256; ++i)
      EXPECT_EQ(cuda::normalized(stored[i], mean, std), expected[i]) << i << ", mean " << mean;
  }
}

TEST(DeviceRows, ChooseTheLoadersCrops) {
  const SampleShape image{375, 500, 3, Layout::nhwc};
  for (const AugmentSpec& augment : augments(image)) {
    const RandomCrop random_crop(image, augment);
    for (std::uint64_t i = 0; i < 2000; ++i) {
      const std::uint64_t seed = mix_bits(i), epoch = i / 7, sample = mix_bits(i + 1) >> (i % 60);
      const auto pass = static_cast<std::uint32_t>(i % 3);
      const Crop expected = random_crop({seed, epoch, sample, pass});
      const cuda::Crop found = cuda::choose_crop(batch_shape(image, 1), augment, {seed, epoch, sample, pass});
      ASSERT_EQ(found.top, expected.top) << i;
      ASSERT_EQ(found.left, expected.left) << i;
      ASSERT_EQ(found.flipped, expected.flipped) << i;
      ASSERT_EQ(found.upside_down, expected.upside_down) << i;
      ASSERT_EQ(found.transposed, expected.transposed) << i;
    }
  }
}

TEST(DeviceRows, WriteCsrRowsAsCells) {
  const std::vector<std::int32_t> indptr{0, 2, 2, 5}, indices{1, 3, 0, 1, 4};
  const std::vector<float> values{1.5f, 2, 3, -4, 5};
  std::vector<float> cells(15);
  const cuda::CsrConversion<float> matrix{indptr.data(), indices.data(), values.data(), 3, 5, cells.data()};
  for (std::size_t row = 0; row < 3; ++row)
    for (std::uint32_t lane = 0; lane < 2; ++lane) cuda::write_csr_row(matrix, row, lane, 2);
  EXPECT_EQ(cells, (std::vector<float>{0, 1.5f, 0, 2, 0, 0, 0, 0, 0, 0, 3, -4, 0, 0, 5}));
}

}  // namespace
}  // namespace chunkhit
