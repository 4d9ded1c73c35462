// Kernels for batches in device memory, for nvcc: crop and flip, u8 to f32, f16 or bf16, layouts, CSR to
// dense. All calls are asynchronous on the stream that they take; pointers are the device's.
#pragma once

#include <chunkhit/cuda_rows.h>
#include <chunkhit/error.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

namespace chunkhit::cuda {

/// Throws, naming the call, unless it succeeded: usage without a GPU or a driver for it, else try_again.
inline void check(cudaError_t result, const char* call) {
  if (result == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // else the caller's next check would find it
  const bool has_no_device = result == cudaErrorNoDevice || result == cudaErrorInvalidDevice ||
                             result == cudaErrorInsufficientDriver;
  throw Error(has_no_device ? ErrorCode::usage : ErrorCode::try_again,
              std::string(call) + ": " + cudaGetErrorString(result));
}

template <>
struct Rounding<__half> {
  CHUNKHIT_HOST_DEVICE static __half of(float value) { return __float2half_rn(value); }
};
template <>
struct Rounding<__nv_bfloat16> {
  CHUNKHIT_HOST_DEVICE static __nv_bfloat16 of(float value) { return __float2bfloat16_rn(value); }
};

inline constexpr std::uint32_t kLanes = 32;         ///< threads that share a row: a warp
inline constexpr std::uint32_t kRowsPerBlock = 8;   ///< rows that a block of threads has at a time
inline constexpr std::size_t kMaxBlocks = 1 << 20;  ///< rows beyond are taken in further rounds

template <class Value>
__global__ void convert_image_rows(ImageConversion<Value> images) {
  const std::size_t row_count = images.shape.batch * images.shape.height;
  const std::size_t step = std::size_t{gridDim.x} * kRowsPerBlock;
  for (std::size_t row = std::size_t{blockIdx.x} * kRowsPerBlock + threadIdx.x / kLanes; row < row_count;
       row += step)
    ImageRow<Value>(images, row).write(threadIdx.x % kLanes, kLanes);
}

template <class Value>
__global__ void convert_csr_rows(CsrConversion<Value> matrix) {
  const std::size_t step = std::size_t{gridDim.x} * kRowsPerBlock;
  for (std::size_t row = std::size_t{blockIdx.x} * kRowsPerBlock + threadIdx.x / kLanes;
       row < matrix.row_count; row += step)
    write_csr_row(matrix, row, threadIdx.x % kLanes, kLanes);
}

/// One thread an image; `use` holds seed, epoch and pass. A template, because nvcc knows no inline kernels.
template <class Index>
__global__ void choose_sample_crops(const Index* samples, std::size_t count, BatchShape stored,
                                    AugmentSpec spec, SampleUse use, Crop* crops) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    use.sample = samples[i];
    crops[i] = choose_crop(stored, spec, use);
  }
}

/// Launches a kernel whose blocks have kLanes * kRowsPerBlock threads and `block_items` items each.
template <class... Parameters>
void launch(const char* name, void (*kernel)(Parameters...), std::size_t items, std::size_t block_items,
            cudaStream_t stream, const std::type_identity_t<Parameters>&... arguments) {
  if (items == 0) return;
  cudaLaunchConfig_t config{};
  const std::size_t blocks = (items - 1) / block_items + 1;
  config.gridDim = dim3(static_cast<unsigned>(std::min(blocks, kMaxBlocks)));
  config.blockDim = dim3(kLanes * kRowsPerBlock);
  config.stream = stream;
  check(cudaLaunchKernelEx(&config, kernel, arguments...), name);
}

/// Crops and flips images, arranges them and, except for std::uint8_t, normalizes them to
/// (x / 255 - mean) / std: floats bit for bit as ImageLoader does, f16 and bf16 as these floats, rounded.
template <class Value>
void convert_images(const ImageConversion<Value>& images, cudaStream_t stream) {
  launch("convert_images", &convert_image_rows<Value>, images.shape.batch * images.shape.height,
         kRowsPerBlock, stream, images);
}

/// Chooses the crops of `count` samples, as ImageLoader with `spec` does; the spec makes sense for the shape.
inline void choose_crops(const std::uint64_t* samples, std::size_t count, const BatchShape& stored,
                         const AugmentSpec& spec, const SampleUse& use, Crop* crops, cudaStream_t stream) {
  launch("choose_crops", &choose_sample_crops<std::uint64_t>, count, std::size_t{kLanes} * kRowsPerBlock,
         stream, samples, count, stored, spec, use, crops);
}

/// Clears the cells and writes the entries of a CSR matrix, whose columns are below column_count.
template <class Value>
void convert_csr(const CsrConversion<Value>& matrix, cudaStream_t stream) {
  const std::size_t bytes = matrix.row_count * matrix.column_count * sizeof(Value);
  if (bytes != 0) check(cudaMemsetAsync(matrix.cells, 0, bytes, stream), "cudaMemsetAsync");
  launch("convert_csr", &convert_csr_rows<Value>, matrix.row_count, kRowsPerBlock, stream, matrix);
}

}  // namespace chunkhit::cuda
