// Separable resampling of 8-bit images with Pillow's arithmetic (Pillow 9.4, src/libImaging/Resample.c).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "chunkhit/image_spec.h"
#include "transform/axis_weights.h"
#include "transform/vnni_mix.h"
#include "types/image.h"

namespace chunkhit {

/// A resize of which only a window is wanted.
struct ResampleRequest {
  Filter filter = Filter::bilinear;
  std::uint32_t source_width = 0;  ///< the whole source
  std::uint32_t source_height = 0;
  float box_width = 0;  ///< [box_x, box_x + box_width) × [box_y, box_y + box_height) of the source is resized
  float box_height = 0;
  std::uint32_t resized_width = 0;  ///< to this size
  std::uint32_t resized_height = 0;
  Rect window;  ///< of which this part is wanted; not empty
  float box_x = 0;
  float box_y = 0;
  bool flipped = false;  ///< the window is mirrored left to right
  bool operator==(const ResampleRequest&) const = default;
};

/// The part of the source that a request's window depends on.
[[nodiscard]] Rect source_region(const ResampleRequest& request);

/// What resampling holds at most beside the region and the window.
[[nodiscard]] std::uint64_t resample_bytes(const ResampleRequest& request, std::uint32_t channels);

/// Resamples; keeps the last request's weights and its scratch rows, so each thread has its own.
class Resampler {
 public:
  /// Writes the window (window.width × window.height × channels) to `out`, whose rows are `out_row_bytes`
  /// apart, from `region_pixels`, the pixels of source_region(request). Channels are treated alike: alpha is
  /// the caller's business.
  void resample(const ResampleRequest& request, ImageView region_pixels, std::uint8_t* out,
                std::size_t out_row_bytes);
  /// Scratch memory that is kept for the next request.
  [[nodiscard]] std::uint64_t held_bytes() const;
  void release();

 private:
  void keep_weights(const ResampleRequest& request, ImageView region_pixels);
  void mix_columns(ImageView region_pixels, std::uint8_t* out, std::size_t out_row_bytes);
  void mix_turned(ImageView region_pixels, std::uint8_t* out, std::size_t out_row_bytes);

  ResampleRequest request_;
  std::uint32_t channels_ = 0;
  AxisWeights horizontal_;  // counted from the region's left edge
  AxisWeights vertical_;    // counted from the region's top edge
  PixelMixer pixel_mixer_;
  bool mixes_pixels_ = false;  // else rows are turned
  ByteBuffer rows_;            // mixed along the rows, not yet down the columns
  ByteBuffer strip_;           // some rows of the source, turned
  ByteBuffer mixed_strip_;     // the same rows, mixed, turned
};

}  // namespace chunkhit
