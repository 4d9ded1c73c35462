// What is done to every image, and what that means for one of known size: no pixels, only geometry.
#pragma once

#include <cstdint>
#include <string>

#include "chunkhit/image_spec.h"
#include "transform/resample.h"
#include "types/image.h"

namespace chunkhit {

/// No side of a source or of a resized image is longer: a float holds every edge and tables of weights stay
/// small.
inline constexpr std::uint32_t kMaxSidePixels = 1u << 20;

/// What one image of known size needs; all sizes are of the upright image.
struct TransformPlan {
  std::string error;         ///< why there can be no sample, in words; then all sizes are 0. Empty as a rule
  std::uint32_t shrink = 1;  ///< by how much the decoder shrinks
  std::uint32_t source_width = 0;  ///< the image after shrinking
  std::uint32_t source_height = 0;
  float box_x =
      0;  ///< the part of it that is resized, fractional after shrinking: [box_x, box_x + box_width) ×
  float box_y = 0;  ///< [box_y, box_y + box_height); from where the stored image begins
  float box_width = 0;
  float box_height = 0;
  std::uint32_t resized_width = 0;
  std::uint32_t resized_height = 0;
  Rect window;                ///< the part of the resized image that the sample shows
  Rect region;                ///< the part of the source that the window depends on
  std::uint32_t paste_x = 0;  ///< the window's position in the sample
  std::uint32_t paste_y = 0;
  Rect canvas;  ///< the part of the sample that is window or, around it, pad colour; the rest is zeros
  std::uint32_t channels = 0;  ///< the sample's channels: 1, 2, 3 or 4
  SampleShape sample;
};

/// Plans for an upright image of `width` × `height` with `source_channels`; `scales` says that its decoder
/// can shrink. Resized sizes follow torchvision's Resize (short_side: long = floor(side · long / short)) and
/// Pillow's ImageOps.pad (fit); crops torchvision's CenterCrop, zeros where the image is smaller. A side
/// over kMaxSidePixels, before or after resizing, is an error. `orientation` says at which sides of the
/// upright image its stored right and bottom are, where shrinking leaves pixels that are only partly covered.
[[nodiscard]] TransformPlan plan_transform(const TransformSpec& spec, std::uint32_t width,
                                           std::uint32_t height, std::uint32_t source_channels, bool scales,
                                           int orientation = 1);

/// What a plan asks of the resampler.
[[nodiscard]] ResampleRequest resample_request(const TransformPlan& plan, Filter filter);

}  // namespace chunkhit
