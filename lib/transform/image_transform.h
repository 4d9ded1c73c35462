// From a decoded image to a sample: resize, crop, pad, layout.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transform/resample.h"
#include "transform/transform_plan.h"
#include "types/image.h"

namespace chunkhit {

/// Whether the last of `channels` channels is alpha.
[[nodiscard]] constexpr bool has_alpha(std::uint32_t channels) { return channels == 2 || channels == 4; }

/// Multiplies the colours by alpha before resampling, in place (Pillow's RGBA → RGBa and LA → La); leaves
/// pixels without alpha as they are.
void multiply_alpha(std::uint8_t* pixels, std::uint32_t channels, std::size_t pixel_count);

/// Divides the colours by alpha again, in place; colours under alpha 0 stay as they are.
void divide_alpha(std::uint8_t* pixels, std::uint32_t channels, std::size_t pixel_count);

/// Whether alpha weighs the colours, as Pillow's Image.resize does: not where pixels are only copied.
[[nodiscard]] bool weighs_alpha(const ResampleRequest& request, std::uint32_t channels);

/// A resampler whose last channel of 2 or 4 is alpha: colours that alpha hides do not show at edges.
class AlphaResampler {
 public:
  /// As Resampler::resample; the pixels are interleaved.
  void resample(const ResampleRequest& request, ImageView region_pixels, std::uint8_t* out,
                std::size_t out_row_bytes);
  /// Scratch memory that is kept for the next request.
  [[nodiscard]] std::uint64_t held_bytes() const;
  void release();

 private:
  Resampler resampler_;
  Image multiplied_;  // the region, its colours multiplied by alpha
};

/// Applies plans; owns scratch memory and the last tables of weights, so each thread has its own.
class ImageTransform {
 public:
  explicit ImageTransform(const TransformSpec& spec) : spec_(spec) {}
  /// Writes the sample (plan.sample.byte_count() bytes, in the plan's layout) from `region_pixels`, the
  /// upright pixels of plan.region with plan.channels channels. Equal to Pillow's convert → resize →
  /// CenterCrop bit for bit.
  void apply(const TransformPlan& plan, ImageView region_pixels, std::uint8_t* sample);
  /// What `apply` holds at most beside the region and the sample.
  [[nodiscard]] std::uint64_t needed_bytes(const TransformPlan& plan) const;
  /// Scratch memory that is kept for the next plan.
  [[nodiscard]] std::uint64_t held_bytes() const;
  void release();

 private:
  void write_window(const TransformPlan& plan, ImageView region_pixels, std::uint8_t* out,
                    std::size_t out_row_bytes);
  void write_planes(const TransformPlan& plan, ImageView region_pixels, std::uint8_t* sample);

  TransformSpec spec_;
  AlphaResampler resampler_;
  Image window_;  // the window before its channels are split
};

}  // namespace chunkhit
