#include "augment/normalizer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>
#include <string>
#include <type_traits>

#include "base/half_float.h"
#include "base/throw_error.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "augment/normalizer.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace chunkhit::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Does the same as the vector code, for the values before and after whole vectors.
void normalize_plainly(const ValueConstants& constants, const std::uint8_t* values, std::size_t begin,
                       std::size_t end, float* out) {
  for (std::size_t i = begin, position = begin % constants.period; i < end; ++i) {
    out[i] = (static_cast<float>(values[i]) / 255.0f - constants.mean[position]) / constants.std[position];
    if (++position == constants.period) position = 0;
  }
}

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128

// Whether MulAdd rounds once, which the corrected quotient needs.
#if (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2 && !defined(HWY_DISABLE_BMI2_FMA)) || HWY_ARCH_ARM_A64
constexpr bool kFused = true;
#else
constexpr bool kFused = false;
#endif

using Floats = hn::CappedTag<float, kConstantLanes>;

// value / divisor by its rounded reciprocal and the quotient's remainder (Markstein 1990).
template <class V>
HWY_INLINE V corrected_quotient(V value, V divisor, V reciprocal) {
  const V quotient = hn::Mul(value, reciprocal);
  return hn::MulAdd(hn::NegMulAdd(quotient, divisor, value), reciprocal, quotient);
}

template <bool kDivide>
HWY_INLINE hn::Vec<Floats> normalized(const ValueConstants& constants, std::size_t position,
                                      hn::Vec<Floats> value) {
  const Floats floats;
  const auto scale = hn::Set(floats, 255.0f);
  const auto mean = hn::LoadU(floats, constants.mean + position),
             std = hn::LoadU(floats, constants.std + position);
  if constexpr (kDivide) return hn::Div(hn::Sub(hn::Div(value, scale), mean), std);
  const auto share = corrected_quotient(value, scale, hn::Set(floats, 1.0f / 255.0f));
  return corrected_quotient(hn::Sub(share, mean), std, hn::LoadU(floats, constants.reciprocal + position));
}

// Normalizes whole vectors from `begin`; returns their end.
template <bool kDivide, bool kStream>
HWY_INLINE std::size_t normalize_vectors(const ValueConstants& constants, const std::uint8_t* values,
                                         std::size_t begin, std::size_t end, float* out) {
  const Floats floats;
  const hn::Rebind<std::int32_t, Floats> words;
  const hn::Rebind<std::uint8_t, Floats> bytes;
  const std::size_t step = hn::Lanes(floats);
  std::size_t i = begin, position = begin % constants.period;
  for (; i + step <= end; i += step) {
    const auto value = hn::ConvertTo(floats, hn::PromoteTo(words, hn::LoadU(bytes, values + i)));
    const auto result = normalized<kDivide>(constants, position, value);
    if constexpr (kStream) {
      hn::Stream(result, floats, out + i);
    } else {
      hn::StoreU(result, floats, out + i);
    }
    position += step;
    if (position >= constants.period) position -= constants.period;
  }
  return i;
}

constexpr std::size_t kLineFloats = 64 / sizeof(float);

// Streamed and other stores never share a cache line.
template <bool kDivide>
HWY_INLINE void normalize_by(const ValueConstants& constants, const std::uint8_t* values, std::size_t count,
                             bool stream, float* out) {
  std::size_t end = 0;
  if (stream) {
    const std::size_t in_line = reinterpret_cast<std::uintptr_t>(out) / sizeof(float) % kLineFloats;
    const std::size_t begin = std::min(count, (kLineFloats - in_line) % kLineFloats);
    normalize_plainly(constants, values, 0, begin, out);
    end = begin + (count - begin) / kLineFloats * kLineFloats;
    normalize_vectors<kDivide, true>(constants, values, begin, end, out);
  }
  end = normalize_vectors<kDivide, false>(constants, values, end, count, out);
  normalize_plainly(constants, values, end, count, out);
}

void normalize_values(const ValueConstants& constants, const std::uint8_t* values, std::size_t count,
                      bool stream, float* out) {
  if (!kFused || constants.reciprocal == nullptr)
    return normalize_by<true>(constants, values, count, stream, out);
  normalize_by<false>(constants, values, count, stream, out);
}

#else

void normalize_values(const ValueConstants& constants, const std::uint8_t* values, std::size_t count, bool,
                      float* out) {
  normalize_plainly(constants, values, 0, count, out);
}

#endif

}  // namespace chunkhit::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace chunkhit {
namespace {

HWY_EXPORT(normalize_values);

constexpr std::size_t kByteValues = 256;

float corrected_quotient(float value, float divisor, float reciprocal) {
  const float quotient = value * reciprocal;
  return std::fma(std::fma(-quotient, divisor, value), reciprocal, quotient);
}

// Returns whether the corrected product equals the division bit by bit for each of the 256 pixel values.
bool divides_exactly(float mean, float std) {
  for (int value = 0; value < 256; ++value) {
    const auto x = static_cast<float>(value);
    const float expected = (x / 255.0f - mean) / std;
    const float share = corrected_quotient(x, 255.0f, 1.0f / 255.0f);
    const float got = corrected_quotient(share - mean, std, 1.0f / std);
    if (std::bit_cast<std::uint32_t>(got) != std::bit_cast<std::uint32_t>(expected)) return false;
  }
  return true;
}

void check_values(const char* option, const std::vector<float>& values, std::uint32_t channels) {
  const std::string name = std::string("normalize.") + option;
  if (values.size() != channels)
    throw_usage(name + ": " + std::to_string(values.size()) + " values for " + std::to_string(channels) +
                " channels");
  if (!std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); }))
    throw_usage(name + ": must be finite");
}

}  // namespace

void normalize_values(const ValueConstants& constants, const std::uint8_t* values, std::size_t count,
                      bool stream, float* out) {
  HWY_DYNAMIC_DISPATCH(normalize_values)(constants, values, count, stream, out);
}

Normalizer::Normalizer(const NormalizeSpec& spec, std::uint32_t channels, Layout layout) {
  check_values("mean", spec.mean, channels);
  check_values("std", spec.std, channels);
  if (std::find(spec.std.begin(), spec.std.end(), 0.0f) != spec.std.end())
    throw_usage("normalize.std: must not be 0");
  for (std::size_t c = 0; c < channels; ++c)
    divides_ = divides_ || !divides_exactly(spec.mean[c], spec.std[c]);
  if (layout == Layout::nhwc) {
    append(spec.mean, spec.std);
  } else {
    for (std::size_t c = 0; c < channels; ++c) append({spec.mean[c]}, {spec.std[c]});
  }
}

void Normalizer::append(const std::vector<float>& means, const std::vector<float>& stds) {
  period_ = means.size() * kConstantLanes;
  for (std::size_t i = 0; i < period_ + kConstantLanes; ++i) {
    means_.push_back(means[i % means.size()]);
    stds_.push_back(stds[i % stds.size()]);
    reciprocals_.push_back(1.0f / stds_.back());
  }
}

ValueConstants Normalizer::constants(std::uint32_t channel) const {
  const std::size_t first = channel * (period_ + kConstantLanes);
  return {&means_[first], &stds_[first], divides_ ? nullptr : &reciprocals_[first], period_};
}

HalfNormalizer::HalfNormalizer(const NormalizeSpec& spec, std::uint32_t channels, Dtype dtype)
    : channels_(channels), values_(channels * kByteValues) {
  std::array<std::uint8_t, kByteValues> bytes{};
  std::iota(bytes.begin(), bytes.end(), std::uint8_t{0});
  std::array<float, kByteValues> floats{};
  for (std::size_t c = 0; c < channels; ++c) {
    const Normalizer channel({{spec.mean[c]}, {spec.std[c]}}, 1, Layout::nhwc);
    normalize_values(channel.constants(0), bytes.data(), bytes.size(), false, floats.data());
    std::ranges::transform(floats, values_.begin() + static_cast<std::ptrdiff_t>(c * kByteValues),
                           dtype == Dtype::float16 ? half_float : bfloat16);
  }
}

void HalfNormalizer::write_pixels(const std::uint8_t* pixels, std::size_t pixel_count,
                                  std::uint16_t* out) const {
  const auto write = [&]<std::size_t kChannels>(std::integral_constant<std::size_t, kChannels>) {
    const std::size_t channels = kChannels == 0 ? channels_ : kChannels;
    const std::uint16_t* const halves = values_.data();
    for (std::size_t i = 0; i < pixel_count; ++i)
      for (std::size_t c = 0; c < channels; ++c)
        out[i * channels + c] = halves[c * kByteValues + pixels[i * channels + c]];
  };
  if (channels_ == 1) return write(std::integral_constant<std::size_t, 1>());
  if (channels_ == 3) return write(std::integral_constant<std::size_t, 3>());
  write(std::integral_constant<std::size_t, 0>());
}

void HalfNormalizer::write_plane(std::uint32_t channel, const std::uint8_t* values, std::size_t count,
                                 std::uint16_t* out) const {
  const std::uint16_t* const halves = &values_[std::size_t{channel} * kByteValues];
  for (std::size_t i = 0; i < count; ++i) out[i] = halves[values[i]];
}

}  // namespace chunkhit
#endif
