#include "transform/axis_weights.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

#include "base/bytes.h"

namespace chunkhit {
namespace {

// The curves are those of Pillow (src/libImaging/Resample.c), so that results are equal bit by bit.
double box_curve(double x) { return x > -0.5 && x <= 0.5 ? 1.0 : 0.0; }

// The same as max(1 - |x|, 0), without a branch: its direction could not be predicted.
double bilinear_curve(double x) {
  const double height = 1.0 - std::fabs(x);
  return (height + std::fabs(height)) * 0.5;
}

double hamming_curve(double x) {
  x = std::fabs(x);
  if (x == 0.0) return 1.0;
  if (x >= 1.0) return 0.0;
  x *= std::numbers::pi;
  // Single-precision coefficients, as in Pillow.
  return std::sin(x) / x * (0.54f + 0.46f * std::cos(x));
}

// Keys' cubic convolution (1981) with a = -0.5.
double bicubic_curve(double x) {
  constexpr double kA = -0.5;
  x = std::fabs(x);
  if (x < 1.0) return ((kA + 2.0) * x - (kA + 3.0)) * x * x + 1;
  if (x < 2.0) return (((x - 5) * x + 8) * x - 4) * kA;
  return 0.0;
}

double sinc(double x) {
  if (x == 0.0) return 1.0;
  x *= std::numbers::pi;
  return std::sin(x) / x;
}

double lanczos_curve(double x) { return -3.0 <= x && x < 3.0 ? sinc(x) * sinc(x / 3) : 0.0; }

/// Maps output pixels to source pixels along one axis. When shrinking, the curve is stretched by the scale,
/// so that it averages all source pixels (antialiasing).
class AxisScale {
 public:
  AxisScale(double support, const AxisRequest& request)
      : request_(request),
        scale_(static_cast<double>(request.box_length) / request.out_length),
        support_(support * std::max(scale_, 1.0)),
        shrink_(1.0 / std::max(scale_, 1.0)) {}

  // The source pixels that wanted output pixel `i` is mixed of.
  [[nodiscard]] AxisSpan taps(std::uint32_t i) const {
    const double center = center_of(i);
    const auto first = std::max<std::int64_t>(0, static_cast<std::int64_t>(center - support_ + 0.5));
    const auto end =
        std::min<std::int64_t>(request_.source_length, static_cast<std::int64_t>(center + support_ + 0.5));
    return {static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(end - first)};
  }

  // Writes the curve's values at the taps of one output pixel, then zeros up to `stride`; returns their sum.
  // Taps are taken by fours, so that there is no branch in a typical pixel.
  template <double (*kCurve)(double)>
  double set_values(std::uint32_t i, const AxisSpan& taps, std::uint32_t stride, double* values) const {
    const double center = center_of(i);
    double sum = 0.0;
    for (std::uint32_t tap = 0; tap < stride; tap += 4) {
      for (std::uint32_t j = tap; j < tap + 4; ++j) {
        const double from_center = static_cast<double>(std::int64_t{taps.first} + j) - center + 0.5;
        values[j] = kCurve(from_center * shrink_) * (j < taps.count ? 1.0 : 0.0);
      }
      for (std::uint32_t j = tap; j < tap + 4; ++j) sum += values[j];
    }
    return sum;
  }

 private:
  // In source pixels.
  [[nodiscard]] double center_of(std::uint32_t i) const {
    const std::uint32_t out_index = request_.out_first + (request_.flipped ? request_.out_count - 1 - i : i);
    return static_cast<double>(request_.box_first) + (out_index + 0.5) * scale_;
  }

  AxisRequest request_;
  double scale_;
  double support_;
  double shrink_;
};

// Rounds half away from zero.
std::int32_t fixed_point(double weight) {
  return static_cast<std::int32_t>(weight * (1 << kWeightBits) + std::copysign(0.5, weight));
}

/// Splits two weights into 16 low and 8 high bits each, as the vector code multiplies them.
WeightPair pair_of(const std::int32_t* weights) {
  const auto low = [](std::int32_t weight) { return static_cast<std::int16_t>(weight & 0xffff); };
  const auto high = [](std::int32_t weight) { return static_cast<std::int8_t>((weight + 0x8000) >> 16); };
  return {{low(weights[0]), low(weights[1])}, {high(weights[0]), high(weights[1])}};
}

// The weights of a pixel sum to 1 unless the curve is zero at all of its taps. They are computed when the
// curve's values have reached the cache: reading those at once stalls.
template <double (*kCurve)(double)>
void set_weights(const AxisScale& scale, AxisWeights& axis) {
  axis.values.resize(axis.weights.size());
  axis.sums.resize(axis.size());
  for (std::uint32_t i = 0; i < axis.size(); ++i) {
    double* const values = &axis.values[std::size_t{i} * axis.stride];
    axis.sums[i] = scale.set_values<kCurve>(i, {axis.first[i], axis.count[i]}, axis.stride, values);
  }
  for (std::size_t i = 0; i < axis.weights.size(); i += 4) {
    const double sum = axis.sums[i / axis.stride];
    const double divisor = sum == 0.0 ? 1.0 : sum;
    for (std::size_t j = i; j < i + 4; ++j) axis.weights[j] = fixed_point(axis.values[j] / divisor);
  }
}

struct FilterCurve {
  void (*set_weights)(const AxisScale& scale, AxisWeights& axis);
  double support;  // source pixels on each side of the centre, at scale 1
};

// In the order of Filter; nearest has none.
constexpr std::array<FilterCurve, 5> kCurves{{
    {set_weights<bilinear_curve>, 1.0},
    {set_weights<bicubic_curve>, 2.0},
    {set_weights<lanczos_curve>, 3.0},
    {set_weights<box_curve>, 0.5},
    {set_weights<hamming_curve>, 1.0},
}};

// Positions of the nearest source pixels. Pillow adds up positions in double precision from the first output
// pixel on, so a window has to start there too.
std::vector<std::uint32_t> nearest_pixels(const AxisRequest& request) {
  std::vector<std::uint32_t> pixels(request.out_count);
  const double scale = static_cast<double>(request.box_length) / request.out_length;
  double position = static_cast<double>(request.box_first) + scale * 0.5;
  for (std::uint32_t skipped = 0; skipped < request.out_first; ++skipped) position += scale;
  for (std::uint32_t& pixel : pixels) {
    pixel = std::min(static_cast<std::uint32_t>(position), request.source_length - 1);
    position += scale;
  }
  return pixels;
}

/// Returns whether the axis is neither scaled, moved nor flipped: its pixels are copied.
bool is_unchanged(const AxisRequest& request) {
  return !request.flipped && request.box_first == 0 &&
         request.box_length == static_cast<float>(request.out_length);
}

void copy_pixels(Filter filter, const AxisRequest& request, AxisWeights& axis) {
  axis.copies = true;
  axis.count.assign(request.out_count, 1);
  if (filter == Filter::nearest) {
    axis.first = nearest_pixels(request);
    if (request.flipped) std::ranges::reverse(axis.first);
  } else {
    axis.first.resize(request.out_count);
    std::iota(axis.first.begin(), axis.first.end(), request.out_first);
  }
}

}  // namespace

WeightDigits digits_of(const std::int32_t* weights) {
  // Added to a weight, these bits carry from each byte into the next where the next digit is one more; they
  // are off again in the digits themselves.
  constexpr std::uint32_t kCarry = 0x808080;
  WeightDigits split;
  for (std::size_t i = 0; i < 4; ++i) {
    const std::uint32_t bits = (static_cast<std::uint32_t>(weights[i]) + kCarry) ^ kCarry;
    split.digits[0][i] = static_cast<std::int8_t>(bits >> 16);
    split.digits[1][i] = static_cast<std::int8_t>(bits >> 8);
    split.digits[2][i] = static_cast<std::int8_t>(bits);
  }
  return split;
}

void compute_weights(Filter filter, const AxisRequest& request, AxisWeights& axis) {
  if (filter == Filter::nearest || is_unchanged(request)) return copy_pixels(filter, request, axis);
  const FilterCurve& curve = kCurves[static_cast<std::size_t>(filter)];
  const AxisScale scale(curve.support, request);
  axis.copies = false;
  axis.first.resize(request.out_count);
  axis.count.resize(request.out_count);
  std::uint32_t most = 0;
  for (std::uint32_t i = 0; i < request.out_count; ++i) {
    const AxisSpan taps = scale.taps(i);
    axis.first[i] = taps.first;
    axis.count[i] = taps.count;
    most = std::max(most, taps.count);
  }
  axis.stride = static_cast<std::uint32_t>(round_up(most, 4));
  axis.weights.resize(std::size_t{request.out_count} * axis.stride);
  curve.set_weights(scale, axis);
  axis.pairs.resize(axis.weights.size() / 2);
  for (std::size_t i = 0; i < axis.pairs.size(); ++i) axis.pairs[i] = pair_of(&axis.weights[2 * i]);
  axis.digits.resize(axis.weights.size() / 4);
  for (std::size_t i = 0; i < axis.digits.size(); ++i) axis.digits[i] = digits_of(&axis.weights[4 * i]);
}

AxisWeights axis_weights(Filter filter, const AxisRequest& request) {
  AxisWeights axis;
  compute_weights(filter, request, axis);
  return axis;
}

AxisSpan axis_span(Filter filter, const AxisRequest& request) {
  if (is_unchanged(request)) return {request.out_first, request.out_count};
  if (filter == Filter::nearest) {
    const std::vector<std::uint32_t> pixels = nearest_pixels(request);
    return {pixels.front(), pixels.back() - pixels.front() + 1};
  }
  const AxisScale scale(kCurves[static_cast<std::size_t>(filter)].support, request);
  AxisSpan begin = scale.taps(0);
  AxisSpan last = scale.taps(request.out_count - 1);
  if (request.flipped) std::swap(begin, last);
  return {begin.first, last.first + last.count - begin.first};
}

}  // namespace chunkhit
