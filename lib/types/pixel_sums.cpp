#include "types/pixel_sums.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "types/pixel_sums.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace chunkhit {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR
constexpr hn::ScalableTag<std::uint8_t> kU8;
using U8 = hn::Vec<hn::ScalableTag<std::uint8_t>>;

/// Sums of one channel, in registers for as many steps as a 32-bit lane can take.
struct ChannelSums {
  using I32 = hn::ScalableTag<std::int32_t>;
  using U64 = hn::ScalableTag<std::uint64_t>;
  static constexpr std::size_t kMaxSteps = 4096;  // 4 · 65,025 a step and lane stays below 2^31
  hn::Vec<U64> sum;
  hn::Vec<I32> even_squares;
  hn::Vec<I32> odd_squares;

  // An implicit constructor would not be compiled for the target.
  HWY_INLINE ChannelSums()
      : sum(hn::Zero(U64())), even_squares(hn::Zero(I32())), odd_squares(hn::Zero(I32())) {}

  HWY_INLINE void add(U8 values) {
    const hn::ScalableTag<std::int16_t> i16;
    sum = hn::Add(sum, hn::SumsOf8(values));
    const auto low = hn::PromoteTo(i16, hn::LowerHalf(values));
    const auto high = hn::PromoteTo(i16, hn::UpperHalf(hn::Half<hn::ScalableTag<std::uint8_t>>(), values));
    even_squares = hn::ReorderWidenMulAccumulate(I32(), low, low, even_squares, odd_squares);
    even_squares = hn::ReorderWidenMulAccumulate(I32(), high, high, even_squares, odd_squares);
  }
  void flush(PixelSums& sums, std::size_t channel) const {
    sums.sum[channel] += hn::GetLane(hn::SumOfLanes(U64(), sum));
    HWY_ALIGN std::int32_t lanes[HWY_MAX_BYTES / 4];
    for (const auto& squares : {even_squares, odd_squares}) {
      hn::Store(squares, I32(), lanes);
      for (std::size_t lane = 0; lane < hn::Lanes(I32()); ++lane)
        sums.sum_of_squares[channel] += static_cast<std::uint64_t>(lanes[lane]);
    }
  }
};

template <std::size_t kChannels>
HWY_INLINE void load(const std::uint8_t* from, U8 (&values)[4]) {
  if constexpr (kChannels == 1) values[0] = hn::LoadU(kU8, from);
  if constexpr (kChannels == 2) hn::LoadInterleaved2(kU8, from, values[0], values[1]);
  if constexpr (kChannels == 3) hn::LoadInterleaved3(kU8, from, values[0], values[1], values[2]);
  if constexpr (kChannels == 4) hn::LoadInterleaved4(kU8, from, values[0], values[1], values[2], values[3]);
}

#endif

/// Adds interleaved pixels; the sums of interleaved channel c go to channel `first + c`.
template <std::size_t kChannels>
void add_interleaved(const std::uint8_t* pixels, std::size_t pixel_count, std::size_t first,
                     PixelSums& sums) {
  std::size_t done = 0;
#if HWY_TARGET != HWY_SCALAR
  const std::size_t lanes = hn::Lanes(kU8);
  while (done + lanes <= pixel_count) {
    ChannelSums channels[kChannels];
    for (std::size_t step = 0; step < ChannelSums::kMaxSteps && done + lanes <= pixel_count;
         ++step, done += lanes) {
      U8 values[4];
      load<kChannels>(pixels + done * kChannels, values);
      for (std::size_t channel = 0; channel < kChannels; ++channel) channels[channel].add(values[channel]);
    }
    for (std::size_t channel = 0; channel < kChannels; ++channel)
      channels[channel].flush(sums, first + channel);
  }
#endif
  for (; done < pixel_count; ++done)
    for (std::size_t channel = 0; channel < kChannels; ++channel) {
      const std::uint64_t value = pixels[done * kChannels + channel];
      sums.sum[first + channel] += value;
      sums.sum_of_squares[first + channel] += value * value;
    }
}

void add_pixels(const std::uint8_t* pixels, std::size_t pixel_count, std::size_t channels, std::size_t first,
                PixelSums& sums) {
  if (channels == 1) add_interleaved<1>(pixels, pixel_count, first, sums);
  if (channels == 2) add_interleaved<2>(pixels, pixel_count, first, sums);
  if (channels == 3) add_interleaved<3>(pixels, pixel_count, first, sums);
  if (channels == 4) add_interleaved<4>(pixels, pixel_count, first, sums);
}

}  // namespace HWY_NAMESPACE
}  // namespace chunkhit
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace chunkhit {

HWY_EXPORT(add_pixels);

void PixelSums::add(const PixelSums& other) {
  for (std::size_t channel = 0; channel < sum.size(); ++channel) {
    sum[channel] += other.sum[channel];
    sum_of_squares[channel] += other.sum_of_squares[channel];
  }
  pixel_count += other.pixel_count;
}

void PixelSums::add_sample(const std::uint8_t* sample, const SampleShape& shape) {
  const std::size_t pixels = std::size_t{shape.height} * shape.width;
  pixel_count += pixels;
  if (shape.layout == Layout::nhwc) {
    HWY_DYNAMIC_DISPATCH(add_pixels)(sample, pixels, shape.channels, 0, *this);
    return;
  }
  for (std::uint32_t channel = 0; channel < shape.channels; ++channel)
    HWY_DYNAMIC_DISPATCH(add_pixels)(sample + channel * pixels, pixels, 1, channel, *this);
}

std::vector<double> PixelSums::mean(std::uint32_t channels) const {
  std::vector<double> result;
  for (std::uint32_t channel = 0; channel < channels && pixel_count > 0; ++channel)
    result.push_back(static_cast<double>(sum[channel]) / static_cast<double>(pixel_count) / 255);
  return result;
}

std::vector<double> PixelSums::std(std::uint32_t channels) const {
  std::vector<double> result;
  const auto count = static_cast<double>(pixel_count);
  for (std::uint32_t channel = 0; channel < channels && pixel_count > 0; ++channel) {
    const double mean = static_cast<double>(sum[channel]) / count;
    const double variance = static_cast<double>(sum_of_squares[channel]) / count - mean * mean;
    result.push_back(std::sqrt(std::max(0.0, variance)) / 255);
  }
  return result;
}

}  // namespace chunkhit
#endif
