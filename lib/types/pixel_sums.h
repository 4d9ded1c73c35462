// Sums over packed pixels, from which mean and standard deviation come.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "types/sample_shape.h"

namespace chunkhit {

/// Sums over the pixels of each channel; exact, so that samples add up to the same statistics in any order.
struct PixelSums {
  std::array<std::uint64_t, 4> sum{};
  std::array<std::uint64_t, 4> sum_of_squares{};
  std::uint64_t pixel_count = 0;

  void add(const PixelSums& other);
  /// Adds one sample of `shape`.
  void add_sample(const std::uint8_t* sample, const SampleShape& shape);
  /// Returns the mean of each channel, of pixels scaled to 0..1; empty without pixels.
  [[nodiscard]] std::vector<double> mean(std::uint32_t channels) const;
  /// Returns the standard deviation of each channel (of the population), of pixels scaled to 0..1.
  [[nodiscard]] std::vector<double> std(std::uint32_t channels) const;
};

}  // namespace chunkhit
