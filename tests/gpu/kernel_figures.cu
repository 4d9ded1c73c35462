// Figures of copies to the GPU and of the kernels, as a table. Needs CUDA and no library.
#include <chunkhit/cuda_kernels.h>
#include <chunkhit/cuda_memory.h>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <vector>

#include "checks.h"
#include "timing.h"

namespace {

using chunkhit::BatchShape;
using chunkhit::Layout;
namespace cuda = chunkhit::cuda;

constexpr std::size_t kBatch = 256;
constexpr BatchShape kStored{kBatch, 224, 224, 3, Layout::nhwc};

void print_row(const char* what, double microseconds, std::size_t bytes) {
  std::printf("| %s | %.0f | %.0f |\n", what, microseconds, static_cast<double>(bytes) / microseconds / 1e3);
}

void time_copies(cudaStream_t stream) {
  const std::size_t bytes = kBatch * cuda::image_values(kStored);
  cuda::DeviceMemory memory;
  auto* const device = memory.reserve<std::uint8_t>(bytes);
  const auto copy_from = [&](const void* host) {
    return gpu_tests::median_microseconds(stream, [=] {
      cuda::check(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream), "cudaMemcpyAsync");
    });
  };
  const chunkhit::BatchAllocator pinned = cuda::pinned_allocator();
  void* const host = pinned.allocate(bytes);
  print_row("copy of 256×224×224×3, pinned", copy_from(host), bytes);
  pinned.release(host, bytes);
  const std::vector<std::uint8_t> pageable(bytes, 1);
  print_row("the same, pageable", copy_from(pageable.data()), bytes);
}

template <class Value>
void time_images(const char* what, const BatchShape& stored, const BatchShape& written,
                 const chunkhit::AugmentSpec& augment, cudaStream_t stream) {
  const std::size_t from = stored.batch * cuda::image_values(stored);
  const std::size_t to = written.batch * cuda::image_values(written);
  cuda::DeviceMemory memory[5];
  const std::vector<float> constants{0.485f, 0.456f, 0.406f, 0.229f, 0.224f, 0.225f};
  std::vector<std::uint64_t> samples(stored.batch);
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i] = i;
  cuda::ImageConversion<Value> images{memory[0].reserve<std::uint8_t>(from), stored};
  images.mean = memory[1].copy<float>(constants, stream);
  images.std = images.mean + stored.channels;
  images.written = memory[2].reserve<Value>(to);
  images.shape = written;
  const std::uint64_t* const numbers = memory[3].copy<std::uint64_t>(samples, stream);
  auto* const crops = memory[4].reserve<cuda::Crop>(stored.batch);
  const bool is_augmented = augment.crop_height != 0;
  if (is_augmented) images.crops = crops;
  const double microseconds = gpu_tests::median_microseconds(stream, [&] {
    if (is_augmented) cuda::choose_crops(numbers, samples.size(), stored, augment, {7, 1}, crops, stream);
    cuda::convert_images(images, stream);
  });
  print_row(what, microseconds, to * (1 + sizeof(Value)));
}

template <class Value>
void time_csr(const char* what, cudaStream_t stream) {
  const std::size_t rows = 500, columns = 26744, row_entries = 144;  // MovieLens-20M's shape
  std::vector<std::int32_t> indptr{0}, indices;
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t i = 0; i < row_entries; ++i)
      indices.push_back(static_cast<std::int32_t>(i * (columns / row_entries) + row % 100));
    indptr.push_back(static_cast<std::int32_t>(indices.size()));
  }
  const std::vector<float> values(indices.size(), 1.5f);
  cuda::DeviceMemory memory[4];
  cuda::CsrConversion<Value> matrix{memory[0].copy<std::int32_t>(indptr, stream),
                                    memory[1].copy<std::int32_t>(indices, stream),
                                    memory[2].copy<float>(values, stream),
                                    rows,
                                    columns,
                                    memory[3].reserve<Value>(rows * columns)};
  const double microseconds =
      gpu_tests::median_microseconds(stream, [&] { cuda::convert_csr(matrix, stream); });
  print_row(what, microseconds, rows * columns * sizeof(Value));
}

void print_figures() {
  const cuda::Stream stream;
  BatchShape planes = kStored, stored = kStored;
  planes.layout = Layout::nchw;
  stored.height = stored.width = 256;
  const chunkhit::AugmentSpec augment{
      .flip_horizontal = 0.5, .crop_height = 224, .crop_width = 224, .random_crop = true};
  gpu_tests::print_gpu();
  std::printf("| what | µs | GB/s, read and written |\n|---|---|---|\n");
  time_copies(stream.get());
  time_images<float>("u8 nhwc to f32 nchw", kStored, planes, {}, stream.get());
  time_images<__half>("u8 nhwc to f16 nchw", kStored, planes, {}, stream.get());
  time_images<__nv_bfloat16>("u8 nhwc to bf16 nchw", kStored, planes, {}, stream.get());
  time_images<float>("u8 nhwc to f32 nhwc", kStored, kStored, {}, stream.get());
  time_images<float>("the first with random crops of 256×256 and flips", stored, planes, augment,
                     stream.get());
  time_csr<float>("CSR to dense f32, 500×26,744 of 72,000 entries", stream.get());
  time_csr<__half>("the same, f16", stream.get());
}

}  // namespace

int main() {
  if (!gpu_tests::has_gpu()) return 0;
  try {
    print_figures();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
