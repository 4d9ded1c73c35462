// Bytes to normalised floats, (x / 255 - mean) / std, with torchvision's rounding: of 32 bits, or 16.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "chunkhit/image_loader.h"
#include "chunkhit/pack_info.h"

namespace chunkhit {

/// One set of constants for each of the values that follow one another; repeats after `period`.
struct ValueConstants {
  const float* mean;
  const float* std;
  const float* reciprocal;  ///< 1 / std, or nullptr where only a division gives the right bits
  std::size_t period;       ///< a multiple of kConstantLanes; each array has kConstantLanes more
};

inline constexpr std::size_t kConstantLanes = 16;

/// Writes `count` floats. With `stream`, whole cache lines go past the caches; hwy::FlushStream must follow.
void normalize_values(const ValueConstants& constants, const std::uint8_t* values, std::size_t count,
                      bool stream, float* out);

/// Holds the constants of pixels (nhwc) or planes (nchw).
class Normalizer {
 public:
  /// Normalizes nothing.
  Normalizer() = default;
  /// Throws usage, naming the option, when there is not one finite mean and std, other than 0, per channel.
  Normalizer(const NormalizeSpec& spec, std::uint32_t channels, Layout layout);
  /// Constants for whole pixels (nhwc, channel 0), or for a channel's plane (nchw).
  [[nodiscard]] ValueConstants constants(std::uint32_t channel) const;

 private:
  void append(const std::vector<float>& means, const std::vector<float>& stds);

  std::vector<float> means_, stds_, reciprocals_;
  std::size_t period_ = 0;
  bool divides_ = false;
};

/// Looks the normalised values of all bytes up: floats of 16 bits, rounded from those of Normalizer.
class HalfNormalizer {
 public:
  /// Normalizes nothing.
  HalfNormalizer() = default;
  /// `dtype` is float16 or bfloat16; `spec` is one that Normalizer takes for so many channels.
  HalfNormalizer(const NormalizeSpec& spec, std::uint32_t channels, Dtype dtype);
  /// Writes values of pixels of all channels from channel 0 on.
  void write_pixels(const std::uint8_t* pixels, std::size_t pixel_count, std::uint16_t* out) const;
  /// Writes values of one channel.
  void write_plane(std::uint32_t channel, const std::uint8_t* values, std::size_t count,
                   std::uint16_t* out) const;

 private:
  std::uint32_t channels_ = 0;
  std::vector<std::uint16_t> values_;  // of each channel, 256
};

}  // namespace chunkhit
