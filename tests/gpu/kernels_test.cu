// The kernels of <chunkhit/cuda_kernels.h> beside plain loops. Needs CUDA and no library;
// tests/CMakeLists.txt also builds it with a stand-in for CUDA, for the CPU.
#include <chunkhit/cuda_kernels.h>
#include <chunkhit/cuda_memory.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "checks.h"

namespace {

using chunkhit::AugmentSpec;
using chunkhit::BatchShape;
using chunkhit::Layout;
namespace cuda = chunkhit::cuda;
using gpu_tests::expect;

constexpr std::uint64_t kSeed = 11, kEpoch = 3;

/// Values of a type in device memory that tests fill and read.
template <class Value>
std::vector<Value> to_host(const Value* device, std::size_t count, cudaStream_t stream) {
  std::vector<Value> host(count);
  cuda::check(cudaMemcpyAsync(host.data(), device, count * sizeof(Value), cudaMemcpyDeviceToHost, stream),
              "cudaMemcpyAsync");
  cuda::check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  return host;
}

/// Rounds to so many significant bits, from this exponent of the smallest normal number on.
double rounded(double value, int bits, int min_exponent) {
  if (value == 0) return value;
  int exponent = 0;
  static_cast<void>(std::frexp(value, &exponent));
  const int last = std::max(exponent, min_exponent + 1) - bits;
  return std::ldexp(std::nearbyint(std::ldexp(value, -last)), last);
}

double as_double(std::uint8_t value) { return value; }
double as_double(float value) { return value; }
double as_double(__half value) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double magnitude =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}
double as_double(__nv_bfloat16 value) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  const std::uint32_t wide = std::uint32_t{bits} << 16;
  float number = 0;
  std::memcpy(&number, &wide, sizeof(number));
  return number;
}

double expected(float value, float) { return value; }
double expected(float value, std::uint8_t) { return value; }
double expected(float value, __half) { return rounded(value, 11, -14); }
double expected(float value, __nv_bfloat16) { return rounded(value, 8, -126); }

std::size_t value_index(const BatchShape& shape, std::size_t n, std::size_t y, std::size_t x, std::size_t c) {
  return shape.layout == Layout::nhwc ? ((n * shape.height + y) * shape.width + x) * shape.channels + c
                                      : ((n * shape.channels + c) * shape.height + y) * shape.width + x;
}

struct Case {
  BatchShape stored, written;
  AugmentSpec augment;
};

std::string name_of(const Case& each) {
  const auto text = [](const BatchShape& shape) {
    return std::to_string(shape.batch) + "x" + std::to_string(shape.height) + "x" +
           std::to_string(shape.width) + "x" + std::to_string(shape.channels) +
           (shape.layout == Layout::nhwc ? " nhwc" : " nchw");
  };
  return text(each.stored) + " to " + text(each.written) + " padding " +
         std::to_string(each.augment.crop_padding);
}

/// The pixel of an image that its crop asks for, 0 in the padding.
std::uint8_t pixel_at(const Case& each, const std::vector<std::uint8_t>& stored, const cuda::Crop& crop,
                      std::size_t n, std::size_t y, std::size_t x, std::size_t c) {
  if (crop.transposed) std::swap(y, x);
  const std::int64_t row =
      crop.top + static_cast<std::int64_t>(crop.upside_down ? each.written.height - 1 - y : y);
  const std::int64_t column =
      crop.left + static_cast<std::int64_t>(crop.flipped ? each.written.width - 1 - x : x);
  if (row < 0 || row >= each.stored.height || column < 0 || column >= each.stored.width) return 0;
  return stored[value_index(each.stored, n, static_cast<std::size_t>(row), static_cast<std::size_t>(column),
                            c)];
}

template <class Value>
void check_images(const Case& each, cudaStream_t stream) {
  const std::size_t values = each.stored.batch * cuda::image_values(each.stored);
  std::vector<std::uint8_t> stored(values);
  std::vector<std::uint64_t> samples(each.stored.batch);
  std::vector<float> constants(2 * each.stored.channels);
  for (std::size_t i = 0; i < values; ++i) stored[i] = static_cast<std::uint8_t>(cuda::mix_bits(i + 1));
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i] = 7 * i + 1;
  for (std::uint32_t c = 0; c < each.stored.channels; ++c) {
    constants[c] = 0.485f - 0.03f * static_cast<float>(c);
    constants[each.stored.channels + c] = 0.229f + 0.017f * static_cast<float>(c);
  }
  cuda::DeviceMemory memory[5];
  cuda::ImageConversion<Value> images{memory[0].copy<std::uint8_t>(stored, stream), each.stored};
  auto* const crops = memory[1].reserve<cuda::Crop>(samples.size());
  cuda::choose_crops(memory[2].copy<std::uint64_t>(samples, stream), samples.size(), each.stored,
                     each.augment, {kSeed, kEpoch, 0, 0}, crops, stream);
  images.crops = crops;
  images.mean = memory[3].copy<float>(constants, stream);
  images.std = images.mean + each.stored.channels;
  images.shape = each.written;
  const std::size_t count = each.written.batch * cuda::image_values(each.written);
  images.written = memory[4].reserve<Value>(count);
  cuda::convert_images(images, stream);
  const std::vector<Value> found = to_host(images.written, count, stream);
  std::size_t wrong = 0;
  for (std::size_t n = 0; n < each.written.batch; ++n) {
    const cuda::Crop crop =
        cuda::choose_crop(each.stored, each.augment, cuda::SampleUse{kSeed, kEpoch, samples[n], 0});
    for (std::size_t y = 0; y < each.written.height; ++y)
      for (std::size_t x = 0; x < each.written.width; ++x)
        for (std::size_t c = 0; c < each.written.channels; ++c) {
          const std::uint8_t pixel = pixel_at(each, stored, crop, n, y, x, c);
          const float number =
              std::is_same_v<Value, std::uint8_t>
                  ? static_cast<float>(pixel)
                  : (static_cast<float>(pixel) / 255.0f - constants[c]) / constants[each.stored.channels + c];
          wrong +=
              as_double(found[value_index(each.written, n, y, x, c)]) == expected(number, Value{}) ? 0 : 1;
        }
  }
  expect(wrong == 0, name_of(each) + ", values of " + std::to_string(sizeof(Value)) +
                         " bytes: " + std::to_string(wrong) + " of " + std::to_string(count) + " are wrong");
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const auto& [height, width] :
       std::vector<std::pair<std::uint32_t, std::uint32_t>>{{1, 1}, {5, 7}, {2, 33}, {9, 64}})
    for (const std::uint32_t channels : {1u, 3u, 4u, 37u})
      for (const Layout stored : {Layout::nhwc, Layout::nchw})
        for (const Layout written : {Layout::nhwc, Layout::nchw})
          for (const AugmentSpec& augment :
               {AugmentSpec{}, AugmentSpec{.flip_horizontal = 0.5},
                AugmentSpec{
                    .flip_horizontal = 0.5, .crop_height = (height + 1) / 2, .crop_width = (width + 1) / 2},
                AugmentSpec{.flip_horizontal = 0.5,
                .crop_height = height,
                .crop_width = width,
                .random_crop = true,
                .crop_padding = 4},
                AugmentSpec{.flip_horizontal = 0.5, .flip_vertical = 0.5},
                AugmentSpec{.crop_height = height,
                .crop_width = height,
                .random_crop = true,
                .crop_padding = height,
                .flip_vertical = 0.5,
                .quarter_turns = true}}) {
            const BatchShape from{5, height, width, channels, stored};
            BatchShape to = from;
            to.layout = written;
            if (augment.crop_height != 0) to.height = augment.crop_height;
            if (augment.crop_width != 0) to.width = augment.crop_width;
            all.push_back({from, to, augment});
          }
  return all;
}

/// Rows with no entry, one, and more than a warp has lanes.
template <class Value>
void check_csr(cudaStream_t stream) {
  const std::size_t rows = 37, columns = 101;
  std::vector<std::int32_t> indptr{0}, indices;
  std::vector<float> values;
  std::vector<double> cells(rows * columns);
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t column = row; row % 3 != 0 && column < columns; column += 1 + row % 5) {
      indices.push_back(static_cast<std::int32_t>(column));
      values.push_back(static_cast<float>(1 + indices.size()) / 3);
      cells[row * columns + column] = expected(values.back(), Value{});
    }
    indptr.push_back(static_cast<std::int32_t>(indices.size()));
  }
  cuda::DeviceMemory memory[4];
  cuda::CsrConversion<Value> matrix;
  matrix.indptr = memory[0].copy<std::int32_t>(indptr, stream);
  matrix.indices = memory[1].copy<std::int32_t>(indices, stream);
  matrix.values = memory[2].copy<float>(values, stream);
  matrix.row_count = rows;
  matrix.column_count = columns;
  matrix.cells = memory[3].reserve<Value>(cells.size());
  cuda::convert_csr(matrix, stream);
  const std::vector<Value> found = to_host(matrix.cells, cells.size(), stream);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < cells.size(); ++i) wrong += as_double(found[i]) == cells[i] ? 0 : 1;
  expect(wrong == 0, "CSR to cells of " + std::to_string(sizeof(Value)) + " bytes: " + std::to_string(wrong));
}

void run_all() {
  const cuda::Stream stream;
  for (const Case& each : cases()) {
    check_images<std::uint8_t>(each, stream.get());
    check_images<float>(each, stream.get());
    check_images<__half>(each, stream.get());
    check_images<__nv_bfloat16>(each, stream.get());
  }
  // More rows than one round of blocks takes.
  const BatchShape tall{3, 3'000'000, 1, 1, Layout::nhwc};
  check_images<std::uint8_t>({tall, tall, {}}, stream.get());
  check_csr<float>(stream.get());
  check_csr<__half>(stream.get());
}

}  // namespace

int main() {
  if (!gpu_tests::has_gpu()) return 0;
  try {
    run_all();
  } catch (const std::exception& error) {
    expect(false, error.what());
  }
  return gpu_tests::report("kernels");
}
