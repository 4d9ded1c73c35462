// Separable resampling of 8-bit images with Pillow's arithmetic (Pillow 9.4, src/libImaging/Resample.c).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "chunkhit/image_spec.h"
#include "types/image.h"

namespace chunkhit {

/// Weights are fixed point with this many fractional bits.
inline constexpr int kWeightBits = 22;

/// Two neighbouring weights in two parts: weight = high · 2^16 + low with -2^15 ≤ low < 2^15. Multiplying
/// 8-bit pixels by them is exact, in 16 bits by the high and in 32 bits by the low parts: what the filters'
/// weights add up to, without their signs, is less than 2, which kWeightBits leaves room for.
struct WeightPair {
  std::array<std::int16_t, 2> low{};
  std::array<std::int8_t, 2> high{};
};

/// Which source pixels each output pixel of one axis mixes, and with which weights.
struct AxisWeights {
  std::vector<std::uint32_t> first;  ///< per output pixel: its first source pixel
  std::vector<std::uint32_t> count;  ///< per output pixel: how many source pixels, at least 1
  std::uint32_t stride = 0;  ///< weights kept per output pixel: even, ≥ every count; the spare ones are zero
  std::vector<std::int32_t> weights;  ///< kWeightBits fractional bits; stride per output pixel
  std::vector<WeightPair> pairs;      ///< the same weights; stride / 2 per output pixel
  bool copies = false;  ///< every output pixel is one source pixel, unchanged; no weights are kept
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(first.size()); }
};

/// One axis of a resize: [box_first, box_first + box_length) of a source of `source_length` pixels becomes
/// `out_length` pixels, of which [out_first, out_first + out_count) are wanted.
struct AxisRequest {
  std::uint32_t source_length = 0;
  float box_length = 0;  ///< box_first + box_length is at most source_length
  std::uint32_t out_length = 0;
  std::uint32_t out_first = 0;
  std::uint32_t out_count = 0;
  float box_first = 0;
};

/// Source pixels [first, first + count).
struct AxisSpan {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

/// Computes the weights of the wanted output pixels.
[[nodiscard]] AxisWeights axis_weights(Filter filter, const AxisRequest& request);

/// The source pixels that the wanted output pixels depend on.
[[nodiscard]] AxisSpan axis_span(Filter filter, const AxisRequest& request);

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
  void keep_weights(const ResampleRequest& request);
  void mix_columns(ImageView region_pixels, std::uint8_t* out, std::size_t out_row_bytes);

  ResampleRequest request_;
  AxisWeights horizontal_;  // counted from the region's left edge
  AxisWeights vertical_;    // counted from the region's top edge
  ByteBuffer rows_;         // mixed along the rows, not yet down the columns
  ByteBuffer strip_;        // some rows of the source, turned
  ByteBuffer mixed_strip_;  // the same rows, mixed, turned
};

}  // namespace chunkhit
