#include "transform/resample.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "transform/row_mix.h"
#include "transform/transpose.h"

namespace chunkhit {
namespace {

// The curves are those of Pillow (src/libImaging/Resample.c), so that results are equal bit by bit.
double box_curve(double x) { return x > -0.5 && x <= 0.5 ? 1.0 : 0.0; }

double bilinear_curve(double x) {
  x = std::fabs(x);
  return x < 1.0 ? 1.0 - x : 0.0;
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

struct FilterCurve {
  double (*value)(double x);
  double support;  // source pixels on each side of the centre, at scale 1
};

// In the order of Filter; nearest has none.
constexpr std::array<FilterCurve, 5> kCurves{{
    {bilinear_curve, 1.0},
    {bicubic_curve, 2.0},
    {lanczos_curve, 3.0},
    {box_curve, 0.5},
    {hamming_curve, 1.0},
}};

// The source pixels that one output pixel is mixed of: `centre` in source pixels, `count` taps from `first`.
struct Taps {
  double centre;
  std::uint32_t first;
  std::uint32_t count;
};

/// Maps output pixels to source pixels along one axis. When shrinking, the curve is stretched by the scale,
/// so that it averages all source pixels (antialiasing).
class AxisScale {
 public:
  AxisScale(const FilterCurve& curve, const AxisRequest& request)
      : curve_(curve),
        source_length_(request.source_length),
        box_first_(static_cast<double>(request.box_first)),
        scale_(static_cast<double>(request.box_length) / request.out_length),
        support_(curve.support * std::max(scale_, 1.0)),
        shrink_(1.0 / std::max(scale_, 1.0)) {}

  [[nodiscard]] Taps taps(std::uint32_t out_index) const {
    const double centre = box_first_ + (out_index + 0.5) * scale_;
    const auto first = std::max<std::int64_t>(0, static_cast<std::int64_t>(centre - support_ + 0.5));
    const auto end =
        std::min<std::int64_t>(source_length_, static_cast<std::int64_t>(centre + support_ + 0.5));
    return {centre, static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(end - first)};
  }

  // Appends the weights of one output pixel, which sum to 1 unless the curve is zero at all of its taps.
  void append_weights(const Taps& taps, std::vector<double>& values) const {
    values.clear();
    double sum = 0.0;
    for (std::uint32_t tap = 0; tap < taps.count; ++tap) {
      const double from_centre = static_cast<double>(tap + taps.first) - taps.centre + 0.5;
      values.push_back(curve_.value(from_centre * shrink_));
      sum += values.back();
    }
    if (sum == 0.0) return;
    for (double& value : values) value /= sum;
  }

 private:
  FilterCurve curve_;
  std::uint32_t source_length_;
  double box_first_;
  double scale_;
  double support_;
  double shrink_;
};

// Rounds half away from zero.
std::int32_t fixed_point(double weight) {
  const double scaled = weight * (1 << kWeightBits);
  return static_cast<std::int32_t>(weight < 0 ? scaled - 0.5 : scaled + 0.5);
}

/// Splits two weights into 16 low and 8 high bits each, as the vector code multiplies them.
WeightPair pair_of(std::int32_t first, std::int32_t second) {
  const auto low = [](std::int32_t weight) { return static_cast<std::int16_t>(weight & 0xffff); };
  const auto high = [](std::int32_t weight) { return static_cast<std::int8_t>((weight + 0x8000) >> 16); };
  return {{low(first), low(second)}, {high(first), high(second)}};
}

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

/// Returns whether the axis is neither scaled nor moved: its pixels are copied.
bool is_unchanged(const AxisRequest& request) {
  return request.box_first == 0 && request.box_length == static_cast<float>(request.out_length);
}

AxisWeights copied_pixels(Filter filter, const AxisRequest& request) {
  AxisWeights axis;
  axis.copies = true;
  axis.count.assign(request.out_count, 1);
  if (filter == Filter::nearest) {
    axis.first = nearest_pixels(request);
  } else {
    for (std::uint32_t i = 0; i < request.out_count; ++i) axis.first.push_back(request.out_first + i);
  }
  return axis;
}

}  // namespace

AxisWeights axis_weights(Filter filter, const AxisRequest& request) {
  if (filter == Filter::nearest || is_unchanged(request)) return copied_pixels(filter, request);
  const AxisScale scale(kCurves[static_cast<std::size_t>(filter)], request);
  AxisWeights axis;
  for (std::uint32_t i = 0; i < request.out_count; ++i) {
    const Taps taps = scale.taps(request.out_first + i);
    axis.first.push_back(taps.first);
    axis.count.push_back(taps.count);
    axis.stride = std::max(axis.stride, taps.count + taps.count % 2);  // even: weights are used in pairs
  }
  axis.weights.assign(std::size_t{request.out_count} * axis.stride, 0);
  std::vector<double> values;
  for (std::uint32_t i = 0; i < request.out_count; ++i) {
    scale.append_weights(scale.taps(request.out_first + i), values);
    std::transform(values.begin(), values.end(), axis.weights.begin() + std::ptrdiff_t{i} * axis.stride,
                   fixed_point);
  }
  axis.pairs.reserve(axis.weights.size() / 2);
  for (std::size_t i = 0; i < axis.weights.size(); i += 2)
    axis.pairs.push_back(pair_of(axis.weights[i], axis.weights[i + 1]));
  return axis;
}

AxisSpan axis_span(Filter filter, const AxisRequest& request) {
  if (is_unchanged(request)) return {request.out_first, request.out_count};
  if (filter == Filter::nearest) {
    const std::vector<std::uint32_t> pixels = nearest_pixels(request);
    return {pixels.front(), pixels.back() - pixels.front() + 1};
  }
  const AxisScale scale(kCurves[static_cast<std::size_t>(filter)], request);
  const Taps begin = scale.taps(request.out_first);
  const Taps last = scale.taps(request.out_first + request.out_count - 1);
  return {begin.first, last.first + last.count - begin.first};
}

namespace {

// Rows that are mixed at the same time: they fill one vector register on most machines, and a strip of a
// typical image stays in the cache.
constexpr std::uint32_t kStripRows = 32;

AxisRequest horizontal_axis(const ResampleRequest& request) {
  return {request.source_width, request.box_width,    request.resized_width,
          request.window.x,     request.window.width, request.box_x};
}

AxisRequest vertical_axis(const ResampleRequest& request) {
  return {request.source_height, request.box_height,    request.resized_height,
          request.window.y,      request.window.height, request.box_y};
}

/// Returns whether the copied pixels are consecutive, so that one memcpy copies a row.
bool is_run(const AxisWeights& axis) { return axis.first.back() - axis.first.front() + 1 == axis.size(); }

template <std::uint32_t kChannels>
void pick_pixels(const AxisWeights& columns, const std::uint8_t* row, std::uint8_t* out) {
  for (std::uint32_t x = 0; x < columns.size(); ++x)
    std::memcpy(out + std::size_t{x} * kChannels, row + std::size_t{columns.first[x]} * kChannels, kChannels);
}

void pick_row(const AxisWeights& columns, const std::uint8_t* row, std::uint32_t channels,
              std::uint8_t* out) {
  if (is_run(columns)) {
    std::memcpy(out, row + std::size_t{columns.first.front()} * channels,
                std::size_t{columns.size()} * channels);
    return;
  }
  using PickPixels = void (*)(const AxisWeights&, const std::uint8_t*, std::uint8_t*);
  constexpr std::array<PickPixels, 4> kByChannels{pick_pixels<1>, pick_pixels<2>, pick_pixels<3>,
                                                  pick_pixels<4>};
  kByChannels[channels - 1](columns, row, out);
}

void pick(const AxisWeights& columns, const AxisWeights& rows, ImageView region_pixels, std::uint8_t* out,
          std::size_t out_row_bytes) {
  for (std::uint32_t y = 0; y < rows.size(); ++y)
    pick_row(columns, region_pixels.row(rows.first[y]), region_pixels.channels, out + y * out_row_bytes);
}

}  // namespace

Rect source_region(const ResampleRequest& request) {
  const AxisSpan columns = axis_span(request.filter, horizontal_axis(request));
  const AxisSpan rows = axis_span(request.filter, vertical_axis(request));
  return {columns.first, rows.first, columns.count, rows.count};
}

std::uint64_t resample_bytes(const ResampleRequest& request, std::uint32_t channels) {
  const Rect region = source_region(request);
  // Upper bound for a pixel: first tap, tap count and weights in both forms, with overlapping windows.
  constexpr std::uint64_t kWeightBytes = 64;
  const std::uint64_t rows = std::uint64_t{request.window.width} * region.height;
  const std::uint64_t strips = (std::uint64_t{region.width} + request.window.width) * kStripRows;
  const std::uint64_t sides =
      std::uint64_t{region.width} + region.height + request.window.width + request.window.height;
  return (rows + strips) * channels + sides * kWeightBytes;
}

std::uint64_t Resampler::held_bytes() const {
  return rows_.capacity() + strip_.capacity() + mixed_strip_.capacity();
}

void Resampler::release() {
  ByteBuffer().swap(rows_);
  ByteBuffer().swap(strip_);
  ByteBuffer().swap(mixed_strip_);
}

void Resampler::resample(const ResampleRequest& request, ImageView region_pixels, std::uint8_t* out,
                         std::size_t out_row_bytes) {
  keep_weights(request);
  if (horizontal_.copies && vertical_.copies) {
    pick(horizontal_, vertical_, region_pixels, out, out_row_bytes);
    return;
  }
  if (vertical_.copies) {
    mix_columns(region_pixels, out, out_row_bytes);
    return;
  }
  const std::size_t row_bytes = std::size_t{request.window.width} * region_pixels.channels;
  if (horizontal_.copies) {
    const std::uint8_t* rows =
        region_pixels.pixels + std::size_t{horizontal_.first.front()} * region_pixels.channels;
    mix_rows(vertical_, rows, region_pixels.row_bytes, row_bytes, out, out_row_bytes);
    return;
  }
  resize_empty(rows_, row_bytes * region_pixels.height);
  mix_columns(region_pixels, rows_.data(), row_bytes);
  mix_rows(vertical_, rows_.data(), row_bytes, row_bytes, out, out_row_bytes);
}

/// Most images of a data set have the same size: their weights are computed once.
void Resampler::keep_weights(const ResampleRequest& request) {
  if (request == request_) return;
  const Rect region = source_region(request);
  horizontal_ = axis_weights(request.filter, horizontal_axis(request));
  vertical_ = axis_weights(request.filter, vertical_axis(request));
  for (std::uint32_t& first : horizontal_.first) first -= region.x;
  for (std::uint32_t& first : vertical_.first) first -= region.y;
  request_ = request;
}

// Mixes along the rows: a strip of rows is turned, so that its columns become rows and mix_rows serves
// both passes, whatever the number of channels; the result is turned back. A last strip overlaps the one
// before it.
void Resampler::mix_columns(ImageView region_pixels, std::uint8_t* out, std::size_t out_row_bytes) {
  const std::uint32_t height = region_pixels.height;
  const std::size_t source_bytes = std::size_t{region_pixels.width} * region_pixels.channels;
  const std::size_t mixed_bytes = std::size_t{horizontal_.size()} * region_pixels.channels;
  resize_empty(strip_, source_bytes * kStripRows);
  resize_empty(mixed_strip_, mixed_bytes * kStripRows);
  for (std::uint32_t done = 0; done < height;) {
    const auto wanted = static_cast<std::uint32_t>(round_up(height - done, kTransposeBlock));
    const std::uint32_t rows = std::min({kStripRows, wanted, height});
    const std::uint32_t top = std::min(done, height - rows);
    const std::size_t pixel_bytes = std::size_t{region_pixels.channels} * rows;
    transpose_bytes({region_pixels.row(top), region_pixels.row_bytes, rows, source_bytes}, strip_.data(),
                    rows);
    mix_rows(horizontal_, strip_.data(), pixel_bytes, pixel_bytes, mixed_strip_.data(), pixel_bytes);
    transpose_bytes({mixed_strip_.data(), rows, mixed_bytes, rows}, out + top * out_row_bytes, out_row_bytes);
    done = top + rows;
  }
}

}  // namespace chunkhit
