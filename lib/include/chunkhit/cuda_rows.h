// Arithmetic of <chunkhit/cuda_kernels.h>, row by row, for a GPU's threads and for the CPU's: what happens to
// an image, and how a CSR row becomes a dense one. Needs no CUDA.
#pragma once

#include <chunkhit/image_loader.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#ifdef __CUDACC__
#define CHUNKHIT_HOST_DEVICE __host__ __device__
#else
#define CHUNKHIT_HOST_DEVICE
#endif

namespace chunkhit::cuda {

/// Which use of which sample an image is; all that its random changes depend on (schemas/order.md).
struct SampleUse {
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  std::uint64_t sample = 0;
  std::uint64_t pass = 0;  ///< of data echoing, and of samples that come again; 0 without
};

/// Crop of an image: its first row and column, below 0 in the padding. The flags apply to the crop, in their
/// order: any flips and quarter turns are some of these three.
struct Crop {
  std::int64_t top = 0;
  std::int64_t left = 0;
  bool flipped = false;      ///< mirrored left to right
  bool upside_down = false;  ///< mirrored top to bottom
  bool transposed = false;   ///< its rows become columns; square crops only
};

/// Images in device memory, and what they become. All pointers are the device's.
template <class Value>
struct ImageConversion {
  const std::uint8_t* stored = nullptr;
  BatchShape stored_shape{};
  const Crop* crops = nullptr;  ///< one an image; null: images stay whole
  const float* mean = nullptr;  ///< one a channel; unused for std::uint8_t
  const float* std = nullptr;   ///< one a channel; unused for std::uint8_t
  Value* written = nullptr;     ///< std::uint8_t, float, __half or __nv_bfloat16
  BatchShape shape{};           ///< shape of `written`
  std::uint8_t padding = 0;     ///< pixels beyond the stored image, before they are normalized
};

/// CSR matrix in device memory, and the cells of a dense one, which are 0 before.
template <class Value>
struct CsrConversion {
  const std::int32_t* indptr = nullptr;
  const std::int32_t* indices = nullptr;
  const float* values = nullptr;
  std::size_t row_count = 0;
  std::size_t column_count = 0;
  Value* cells = nullptr;  ///< (row_count, column_count) of float or __half
};

/// Rounds a float to a Value, to the nearest one, halves to even.
template <class Value>
struct Rounding;
template <>
struct Rounding<float> {
  CHUNKHIT_HOST_DEVICE static float of(float value) { return value; }
};

CHUNKHIT_HOST_DEVICE inline std::uint64_t mix_bits(std::uint64_t bits) {
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
  return bits ^ (bits >> 31);
}

CHUNKHIT_HOST_DEVICE inline std::uint64_t random_bits(std::uint64_t seed, std::uint64_t purpose,
                                                      std::uint64_t index) {
  const std::uint64_t golden = 0x9e3779b97f4a7c15u;
  const std::uint64_t key = mix_bits(seed + golden * (purpose + 1));
  return mix_bits(mix_bits(key ^ ((index + 1) * golden)) + key);
}

/// Returns the upper half of a product of 128 bits.
CHUNKHIT_HOST_DEVICE inline std::uint64_t high_product(std::uint64_t a, std::uint64_t b) {
#ifdef __CUDA_ARCH__
  return __umul64hi(a, b);
#else
  return static_cast<std::uint64_t>((static_cast<unsigned __int128>(a) * b) >> 64);
#endif
}

/// Returns half of a number, rounded to even, as torchvision's CenterCrop rounds; towards zero where it pads.
CHUNKHIT_HOST_DEVICE inline std::int64_t round_half(std::int64_t value) {
  const std::int64_t half = value / 2;
  return value % 2 == 0 || value < 0 ? half : half + half % 2;
}

/// Returns a number in [0, 1) of 53 random bits.
CHUNKHIT_HOST_DEVICE inline double random_share(std::uint64_t bits) {
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

/// Turns a crop counterclockwise. A quarter is a flip left to right, whose rows become columns.
CHUNKHIT_HOST_DEVICE inline void turn(Crop& crop, std::uint64_t quarters) {
  if (quarters == 1 || quarters == 2) crop.flipped = !crop.flipped;
  if (quarters == 2 || quarters == 3) crop.upside_down = !crop.upside_down;
  crop.transposed = quarters % 2 == 1;
}

/// Chooses the crop of an image, as AugmentSpec of ImageLoader does; resizing is not done here.
CHUNKHIT_HOST_DEVICE inline Crop choose_crop(const BatchShape& stored, const AugmentSpec& spec,
                                             const SampleUse& use) {
  const std::uint64_t flip = 6, crop = 7, flip_vertical = 19, quarter_turns = 20;  // as schemas/order.md
  const std::uint64_t index = mix_bits(mix_bits(mix_bits(use.epoch + 1) + use.sample) + use.pass);
  const std::int64_t padding = spec.crop_padding;
  const bool is_whole = spec.crop_height == 0;
  const std::int64_t free_rows = is_whole ? 0 : stored.height + 2 * padding - spec.crop_height;
  const std::int64_t free_columns = is_whole ? 0 : stored.width + 2 * padding - spec.crop_width;
  std::int64_t row = round_half(free_rows), column = round_half(free_columns);
  if (spec.random_crop) {
    const std::uint64_t rows = static_cast<std::uint64_t>(free_rows) + 1;
    const std::uint64_t columns = static_cast<std::uint64_t>(free_columns) + 1;
    const std::uint64_t position = high_product(random_bits(use.seed, crop, index), rows * columns);
    row = static_cast<std::int64_t>(position / columns);
    column = static_cast<std::int64_t>(position % columns);
  }
  Crop chosen{row - padding, column - padding};
  chosen.flipped = random_share(random_bits(use.seed, flip, index)) < spec.flip_horizontal;
  chosen.upside_down = random_share(random_bits(use.seed, flip_vertical, index)) < spec.flip_vertical;
  if (spec.quarter_turns) turn(chosen, high_product(random_bits(use.seed, quarter_turns, index), 4));
  return chosen;
}

/// Returns (pixel / 255 - mean) / std. Each operation is rounded once, with nvcc's -use_fast_math, too.
CHUNKHIT_HOST_DEVICE inline float normalized(std::uint8_t pixel, float mean, float std) {
#ifdef __CUDA_ARCH__
  return __fdiv_rn(__fsub_rn(__fdiv_rn(static_cast<float>(pixel), 255.0f), mean), std);
#else
  return (static_cast<float>(pixel) / 255.0f - mean) / std;
#endif
}

/// Distances between values of an image.
struct Strides {
  std::size_t row = 0;
  std::size_t pixel = 0;
  std::size_t channel = 0;
};

CHUNKHIT_HOST_DEVICE inline Strides strides_of(const BatchShape& shape) {
  if (shape.layout == Layout::nhwc) return {std::size_t{shape.width} * shape.channels, shape.channels, 1};
  return {shape.width, 1, std::size_t{shape.height} * shape.width};
}

/// Returns the number of values of one image.
CHUNKHIT_HOST_DEVICE inline std::size_t image_values(const BatchShape& shape) {
  return std::size_t{shape.height} * shape.width * shape.channels;
}

/// One row of a written image, and where its pixels come from.
template <class Value>
class ImageRow {
 public:
  /// `row` counts through the rows of all images of the batch.
  CHUNKHIT_HOST_DEVICE ImageRow(const ImageConversion<Value>& images, std::size_t row)
      : images_(images), from_(strides_of(images.stored_shape)), to_(strides_of(images.shape)) {
    const std::size_t image = row / images.shape.height, y = row % images.shape.height;
    Crop crop{};
    if (images.crops != nullptr) crop = images.crops[image];
    const Side rows{crop.top, crop.upside_down, images.stored_shape.height, images.shape.height, from_.row};
    const Side columns{crop.left, crop.flipped, images.stored_shape.width, images.shape.width, from_.pixel};
    const Side across = crop.transposed ? columns : rows;
    along_ = crop.transposed ? rows : columns;
    const std::int64_t line = across.position(y);
    is_inside_ = across.holds(line);
    stored_ = images.stored + image * image_values(images.stored_shape);
    if (is_inside_) stored_ += static_cast<std::size_t>(line) * across.step;
    written_ = images.written + image * image_values(images.shape) + y * to_.row;
  }

  /// Writes this lane's share of the row; neighboring lanes write neighboring values.
  CHUNKHIT_HOST_DEVICE void write(std::uint32_t lane, std::uint32_t lane_count) const {
    const std::uint32_t width = images_.shape.width, channels = images_.shape.channels;
    if (images_.shape.layout == Layout::nchw) {
      for (std::uint32_t x = lane; x < width; x += lane_count)
        for (std::uint32_t c = 0; c < channels; ++c) write_value(x, c);
      return;
    }
    const std::uint32_t pixel_step = lane_count / channels, channel_step = lane_count % channels;
    for (std::uint32_t x = lane / channels, c = lane % channels; x < width; x += pixel_step) {
      write_value(x, c);
      c += channel_step;
      if (c >= channels) {
        c -= channels;
        ++x;
      }
    }
  }

 private:
  /// The rows of a stored image, or its columns, and the crop's part of them.
  struct Side {
    std::int64_t first = 0;
    bool reversed = false;
    std::uint32_t stored = 0;   // how many there are
    std::uint32_t written = 0;  // how many the crop has
    std::size_t step = 0;       // values from one to the next
    CHUNKHIT_HOST_DEVICE std::int64_t position(std::size_t index) const {
      return first + static_cast<std::int64_t>(reversed ? written - 1 - index : index);
    }
    CHUNKHIT_HOST_DEVICE bool holds(std::int64_t position) const {
      return position >= 0 && position < static_cast<std::int64_t>(stored);
    }
  };

  CHUNKHIT_HOST_DEVICE void write_value(std::uint32_t x, std::uint32_t c) const {
    const std::int64_t from = along_.position(x);
    std::uint8_t pixel = images_.padding;
    if (is_inside_ && along_.holds(from))
      pixel = stored_[static_cast<std::size_t>(from) * along_.step + c * from_.channel];
    Value& written = written_[x * to_.pixel + c * to_.channel];
    if constexpr (std::is_same_v<Value, std::uint8_t>)
      written = pixel;
    else
      written = Rounding<Value>::of(normalized(pixel, images_.mean[c], images_.std[c]));
  }

  const ImageConversion<Value>& images_;
  Strides from_, to_;
  Side along_{};            // which stored pixels the row has
  bool is_inside_ = false;  // within the stored image across the row; else padding
  const std::uint8_t* stored_ = nullptr;
  Value* written_ = nullptr;
};

/// Writes this lane's share of a CSR row's entries into its cells.
template <class Value>
CHUNKHIT_HOST_DEVICE void write_csr_row(const CsrConversion<Value>& matrix, std::size_t row,
                                        std::uint32_t lane, std::uint32_t lane_count) {
  Value* const cells = matrix.cells + row * matrix.column_count;
  for (std::int64_t i = std::int64_t{matrix.indptr[row]} + lane; i < matrix.indptr[row + 1]; i += lane_count)
    cells[matrix.indices[i]] = Rounding<Value>::of(matrix.values[i]);
}

}  // namespace chunkhit::cuda
