// Which pixels an output pixel of a resize is mixed of along one axis, and with which weights.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "chunkhit/image_spec.h"

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

/// Four neighbouring weights as three signed bytes each, the high ones first:
/// weight = digits[0] · 2^16 + digits[1] · 2^8 + digits[2].
struct WeightDigits {
  std::array<std::array<std::int8_t, 4>, 3> digits{};
};

/// Splits four weights.
[[nodiscard]] WeightDigits digits_of(const std::int32_t* weights);

/// Which source pixels each output pixel of one axis mixes, and with which weights.
struct AxisWeights {
  std::vector<std::uint32_t> first;  ///< per output pixel: its first source pixel
  std::vector<std::uint32_t> count;  ///< per output pixel: how many source pixels, at least 1
  std::uint32_t stride =
      0;  ///< weights per output pixel: a multiple of 4, ≥ every count; spare ones are zero
  std::vector<std::int32_t> weights;  ///< kWeightBits fractional bits; stride per output pixel
  std::vector<WeightPair> pairs;      ///< the same weights; stride / 2 per output pixel
  std::vector<WeightDigits> digits;   ///< the same weights; stride / 4 per output pixel
  std::vector<double> values;         ///< scratch: what the weights are the quotients of
  std::vector<double> sums;
  bool copies = false;  ///< every output pixel is one source pixel, unchanged; weights have no meaning
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
  bool flipped = false;  ///< the wanted output pixels are in reverse order
};

/// Source pixels [first, first + count).
struct AxisSpan {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

/// Computes the weights of the wanted output pixels; the vectors keep their memory.
void compute_weights(Filter filter, const AxisRequest& request, AxisWeights& axis);

/// Returns new ones.
[[nodiscard]] AxisWeights axis_weights(Filter filter, const AxisRequest& request);

/// The source pixels that the wanted output pixels depend on.
[[nodiscard]] AxisSpan axis_span(Filter filter, const AxisRequest& request);

}  // namespace chunkhit
