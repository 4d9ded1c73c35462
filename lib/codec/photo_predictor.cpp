#include "codec/photo_predictor.h"

#include <algorithm>
#include <cstring>

// Compiled once for each instruction set; the one to run is chosen at run time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/photo_predictor.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
// After foreach_target.h, as Highway wants it.
#include <hwy/highway.h>

#include "base/per_thread.h"
#include "codec/photo_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace chunkhit::HWY_NAMESPACE {

// The arithmetic is linear modulo 256, so that its steps may be done in any order: rows are predicted as they
// lie, then pulled apart; planes are summed up, then put together.

/// Writes the residuals of interleaved pixels as one plane per channel.
void predict_pixels(const std::uint8_t* sample, const SampleShape& shape, MutableBytes scratch,
                    std::uint8_t* residuals) {
  const std::size_t channels = shape.channels, row_bytes = shape.width * channels;
  const std::size_t plane_bytes = std::size_t{shape.height} * shape.width;
  const std::uint8_t* above = scratch.data();
  for (std::size_t y = 0; y < shape.height; ++y) {
    const std::uint8_t* row = sample + y * row_bytes;
    std::uint8_t* difference = scratch.data() + row_bytes;
    subtract_prediction(row, above, row_bytes, channels, difference);
    split_pixels(difference, shape.width, channels, residuals + y * shape.width, plane_bytes);
    above = row;
  }
}

void restore_pixels(const std::uint8_t* residuals, const SampleShape& shape, MutableBytes scratch,
                    std::uint8_t* sample) {
  const std::size_t channels = shape.channels, row_bytes = shape.width * channels;
  const std::size_t plane_bytes = std::size_t{shape.height} * shape.width;
  const std::uint8_t* above = scratch.data();
  std::uint8_t* sums = scratch.data() + row_bytes;
  std::uint8_t* difference = sums + row_bytes;
  for (std::size_t y = 0; y < shape.height; ++y) {
    for (std::size_t c = 0; c < channels; ++c)
      sum_row(residuals + c * plane_bytes + y * shape.width, shape.width, sums + c * shape.width);
    join_pixels(sums, shape.width, channels, difference);
    add_rows(difference, above, row_bytes, sample + y * row_bytes);
    above = sample + y * row_bytes;
  }
}

/// Writes the residuals of planes; red and blue are stored as differences to green, which is similar.
void predict_planes(const std::uint8_t* sample, const SampleShape& shape, MutableBytes scratch,
                    std::uint8_t* residuals) {
  const std::size_t width = shape.width, plane_bytes = std::size_t{shape.height} * width;
  std::uint8_t* differences = scratch.data() + width;
  for (std::size_t y = 0; y < shape.height; ++y) {
    for (std::size_t c = 0; c < shape.channels; ++c) {
      const std::uint8_t* row = sample + c * plane_bytes + y * width;
      subtract_prediction(row, y == 0 ? scratch.data() : row - width, width, 1, differences + c * width);
    }
    for (std::size_t c = 0; c < shape.channels; ++c) {
      const bool without_green = shape.channels == 3 && c != 1;
      subtract_rows(differences + c * width, without_green ? differences + width : scratch.data(), width,
                    residuals + c * plane_bytes + y * width);
    }
  }
}

void restore_planes(const std::uint8_t* residuals, const SampleShape& shape, MutableBytes scratch,
                    std::uint8_t* sample) {
  const std::size_t width = shape.width, plane_bytes = std::size_t{shape.height} * width;
  std::uint8_t* sums = scratch.data() + width;
  std::uint8_t* with_green = sums + std::size_t{shape.channels} * width;
  for (std::size_t y = 0; y < shape.height; ++y) {
    for (std::size_t c = 0; c < shape.channels; ++c)
      sum_row(residuals + c * plane_bytes + y * width, width, sums + c * width);
    for (std::size_t c = 0; c < shape.channels; ++c) {
      const bool without_green = shape.channels == 3 && c != 1;
      add_rows(sums + c * width, without_green ? sums + width : scratch.data(), width, with_green);
      std::uint8_t* row = sample + c * plane_bytes + y * width;
      add_rows(with_green, y == 0 ? scratch.data() : row - width, width, row);
    }
  }
}

}  // namespace chunkhit::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace chunkhit {
namespace {

HWY_EXPORT(predict_pixels);
HWY_EXPORT(restore_pixels);
HWY_EXPORT(predict_planes);
HWY_EXPORT(restore_planes);

using SampleFunction = void (*)(const std::uint8_t*, const SampleShape&, MutableBytes, std::uint8_t*);

void for_each_sample(SampleFunction function, Bytes from, const SampleShape& shape, std::uint8_t* to) {
  const std::size_t sample_bytes = shape.byte_count(), image_bytes = shape.pixel_bytes(),
                    pixels = std::size_t{shape.height} * shape.width;
  const std::size_t row_bytes = std::size_t{shape.width} * shape.channels;
  // A row of zeros, the one above the first row, and room for two rows. Kept, so that a thread allocates
  // once.
  static PerThread<ByteBuffer> buffer;
  ByteBuffer& kept = buffer.get();
  if (kept.size() < row_bytes * 3) kept.resize(row_bytes * 3);
  const MutableBytes scratch(kept.data(), row_bytes * 3);
  std::memset(scratch.data(), 0, row_bytes);
  for (std::size_t at = 0; at + sample_bytes <= from.size(); at += sample_bytes) {
    function(from.data() + at, shape, scratch, to + at);
    std::size_t field = at + image_bytes;
    for (const auto& [name, role] : shape.pairs) {
      if (traits_of(role).is_image)
        function(from.data() + field, shape, scratch, to + field);
      else
        std::copy_n(from.data() + field, pixels, to + field);
      field += traits_of(role).is_image ? image_bytes : pixels;
    }
  }
}

bool lies_in_planes(const SampleShape& shape) { return shape.layout == Layout::nchw || shape.channels == 1; }

// Each sample is dispatched by itself: the function that the first dispatch of a process gives asks for the
// CPU's features at each call, which takes 20 us in a virtual machine.
void predict_sample(const std::uint8_t* from, const SampleShape& shape, MutableBytes scratch,
                    std::uint8_t* to) {
  const auto function =
      lies_in_planes(shape) ? HWY_DYNAMIC_DISPATCH(predict_planes) : HWY_DYNAMIC_DISPATCH(predict_pixels);
  function(from, shape, scratch, to);
}

void restore_sample(const std::uint8_t* from, const SampleShape& shape, MutableBytes scratch,
                    std::uint8_t* to) {
  const auto function =
      lies_in_planes(shape) ? HWY_DYNAMIC_DISPATCH(restore_planes) : HWY_DYNAMIC_DISPATCH(restore_pixels);
  function(from, shape, scratch, to);
}

}  // namespace

void predict_photo(Bytes samples, const SampleShape& shape, MutableBytes residuals) {
  for_each_sample(predict_sample, samples, shape, residuals.data());
}

void restore_photo(Bytes residuals, const SampleShape& shape, MutableBytes samples) {
  for_each_sample(restore_sample, residuals, shape, samples.data());
}

}  // namespace chunkhit
#endif
