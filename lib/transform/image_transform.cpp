#include "transform/image_transform.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "transform/transpose.h"

namespace chunkhit {
namespace {

// Divides a product of two 8-bit values by 255, rounded: Pillow's MULDIV255.
constexpr std::uint8_t divide_by_255(unsigned product) {
  product += 128;
  return static_cast<std::uint8_t>(((product >> 8) + product) >> 8);
}

template <std::uint32_t kChannels>
void multiply(std::uint8_t* pixel, std::size_t pixel_count) {
  for (const std::uint8_t* const end = pixel + pixel_count * kChannels; pixel != end; pixel += kChannels) {
    const unsigned alpha = pixel[kChannels - 1];
    if (alpha == 255) continue;
    for (std::uint32_t i = 0; i + 1 < kChannels; ++i) pixel[i] = divide_by_255(pixel[i] * alpha);
  }
}

template <std::uint32_t kChannels>
void divide(std::uint8_t* pixel, std::size_t pixel_count) {
  for (const std::uint8_t* const end = pixel + pixel_count * kChannels; pixel != end; pixel += kChannels) {
    const unsigned alpha = pixel[kChannels - 1];
    if (alpha == 0 || alpha == 255) continue;
    for (std::uint32_t i = 0; i + 1 < kChannels; ++i)
      pixel[i] = static_cast<std::uint8_t>(std::min(255u, 255u * pixel[i] / alpha));
  }
}

}  // namespace

void multiply_alpha(std::uint8_t* pixels, std::uint32_t channels, std::size_t pixel_count) {
  if (channels == 2) multiply<2>(pixels, pixel_count);
  if (channels == 4) multiply<4>(pixels, pixel_count);
}

void divide_alpha(std::uint8_t* pixels, std::uint32_t channels, std::size_t pixel_count) {
  if (channels == 2) divide<2>(pixels, pixel_count);
  if (channels == 4) divide<4>(pixels, pixel_count);
}

namespace {

using Pixel = std::array<std::uint8_t, 4>;

// An RGB colour as an opaque pixel; gray is Pillow's L of it (src/libImaging/Convert.c).
Pixel opaque_pixel(const std::array<std::uint8_t, 3>& color, std::uint32_t channels) {
  if (channels >= 3) return {color[0], color[1], color[2], 255};
  const std::uint32_t gray = (19595u * color[0] + 38470u * color[1] + 7471u * color[2] + 32768u) >> 16;
  return {static_cast<std::uint8_t>(gray), 255, 0, 0};
}

/// Fills the first row pixel by pixel and copies it to the other rows.
void fill_pixels(const SampleShape& shape, Rect rect, const Pixel& pixel, std::uint8_t* sample) {
  const std::size_t row_bytes = std::size_t{shape.width} * shape.channels;
  std::uint8_t* const first_row = sample + rect.y * row_bytes + std::size_t{rect.x} * shape.channels;
  for (std::uint32_t x = 0; x < rect.width; ++x)
    std::memcpy(first_row + std::size_t{x} * shape.channels, pixel.data(), shape.channels);
  for (std::uint32_t y = 1; y < rect.height; ++y)
    std::memcpy(first_row + y * row_bytes, first_row, std::size_t{rect.width} * shape.channels);
}

void fill_planes(const SampleShape& shape, Rect rect, const Pixel& pixel, std::uint8_t* sample) {
  for (std::uint32_t channel = 0; channel < shape.channels; ++channel)
    for (std::uint32_t y = rect.y; y < rect.y + rect.height; ++y)
      std::memset(sample + (std::size_t{channel} * shape.height + y) * shape.width + rect.x, pixel[channel],
                  rect.width);
}

void fill_rect(const SampleShape& shape, Rect rect, const Pixel& pixel, std::uint8_t* sample) {
  if (shape.layout == Layout::nchw) return fill_planes(shape, rect, pixel, sample);
  fill_pixels(shape, rect, pixel, sample);
}

// Fills zeros around the canvas and the pad colour on it; the image is then written over it.
void fill_surroundings(const TransformPlan& plan, const std::array<std::uint8_t, 3>& pad_color,
                       std::uint8_t* sample) {
  const Rect whole{0, 0, plan.sample.width, plan.sample.height};
  const Rect window{plan.paste_x, plan.paste_y, plan.window.width, plan.window.height};
  if (plan.canvas != whole) std::memset(sample, 0, plan.sample.pixel_bytes());
  if (plan.canvas != window)
    fill_rect(plan.sample, plan.canvas, opaque_pixel(pad_color, plan.channels), sample);
}

/// Copies the region, because the decoded pixels are not ours to change.
void multiply_region(ImageView region, Image& multiplied) {
  multiplied.reshape(region.width, region.height, region.channels);
  for (std::uint32_t y = 0; y < region.height; ++y) {
    std::memcpy(multiplied.row(y), region.row(y), multiplied.row_bytes());
    multiply_alpha(multiplied.row(y), region.channels, region.width);
  }
}

bool changes_size(const ResampleRequest& request) {
  return request.resized_width != request.source_width || request.resized_height != request.source_height ||
         request.box_width != static_cast<float>(request.source_width) ||
         request.box_height != static_cast<float>(request.source_height);
}

}  // namespace

bool weighs_alpha(const ResampleRequest& request, std::uint32_t channels) {
  return has_alpha(channels) && request.filter != Filter::nearest && changes_size(request);
}

void AlphaResampler::resample(const ResampleRequest& request, ImageView region_pixels, std::uint8_t* out,
                              std::size_t out_row_bytes) {
  const std::uint32_t channels = region_pixels.channels;
  if (!weighs_alpha(request, channels))
    return resampler_.resample(request, region_pixels, out, out_row_bytes);
  multiply_region(region_pixels, multiplied_);
  resampler_.resample(request, multiplied_.view(), out, out_row_bytes);
  for (std::uint32_t y = 0; y < request.window.height; ++y)
    divide_alpha(out + y * out_row_bytes, channels, request.window.width);
}

std::uint64_t AlphaResampler::held_bytes() const {
  return resampler_.held_bytes() + multiplied_.pixels.capacity();
}

void AlphaResampler::release() {
  resampler_.release();
  ByteBuffer().swap(multiplied_.pixels);
}

void ImageTransform::apply(const TransformPlan& plan, ImageView region_pixels, std::uint8_t* sample) {
  fill_surroundings(plan, spec_.pad_color, sample);
  if (plan.sample.layout == Layout::nchw && plan.channels > 1)
    return write_planes(plan, region_pixels, sample);
  const std::size_t row_bytes = std::size_t{plan.sample.width} * plan.channels;
  std::uint8_t* const slot = sample + plan.paste_y * row_bytes + std::size_t{plan.paste_x} * plan.channels;
  write_window(plan, region_pixels, slot, row_bytes);
}

std::uint64_t ImageTransform::needed_bytes(const TransformPlan& plan) const {
  const auto bytes = [&](const Rect& rect) {
    return std::uint64_t{rect.width} * rect.height * plan.channels;
  };
  const bool splits = plan.sample.layout == Layout::nchw && plan.channels > 1;
  const ResampleRequest request = resample_request(plan, spec_.resample);
  return (changes_size(request) ? resample_bytes(request, plan.channels) : 0) +
         (weighs_alpha(request, plan.channels) ? bytes(plan.region) : 0) + (splits ? bytes(plan.window) : 0);
}

std::uint64_t ImageTransform::held_bytes() const {
  return resampler_.held_bytes() + window_.pixels.capacity();
}

void ImageTransform::release() {
  resampler_.release();
  ByteBuffer().swap(window_.pixels);
}

void ImageTransform::write_window(const TransformPlan& plan, ImageView region_pixels, std::uint8_t* out,
                                  std::size_t out_row_bytes) {
  resampler_.resample(resample_request(plan, spec_.resample), region_pixels, out, out_row_bytes);
}

void ImageTransform::write_planes(const TransformPlan& plan, ImageView region_pixels, std::uint8_t* sample) {
  window_.reshape(plan.window.width, plan.window.height, plan.channels);
  write_window(plan, region_pixels, window_.pixels.data(), window_.row_bytes());
  const SampleShape& shape = plan.sample;
  const std::size_t plane_bytes = std::size_t{shape.width} * shape.height;
  for (std::uint32_t y = 0; y < window_.height; ++y) {
    std::uint8_t* const row = sample + std::size_t{plan.paste_y + y} * shape.width + plan.paste_x;
    split_channels(window_.row(y), shape.channels, window_.width, row, plane_bytes);
  }
}

}  // namespace chunkhit
