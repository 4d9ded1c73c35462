// Along one axis: which source pixels each output pixel mixes, and how strongly. The arithmetic is Pillow's
// (Pillow 9.4, src/libImaging/Resample.c and Geometry.c), reproduced down to the last bit; compile with
// -ffp-contract=off.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace chunkhit {

/// Names the curve that weighs source pixels; spelled as Pillow does.
enum class Filter { bilinear, bicubic, lanczos, box, hamming, nearest };
inline constexpr std::array<std::string_view, 6> kFilterNames{"bilinear", "bicubic", "lanczos",
                                                              "box",      "hamming", "nearest"};

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

}  // namespace chunkhit
