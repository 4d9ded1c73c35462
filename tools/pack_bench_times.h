// What epochs took, and the rates that follow.
#pragma once

#include <cstdint>
#include <vector>

namespace chunkhit {

/// An epoch's times in seconds, or those of several.
struct EpochTimes {
  std::uint64_t samples = 0;
  std::uint64_t ratings = 0;  ///< entries of rows, held-out ones included; 0 of images
  std::uint64_t bytes = 0;    ///< of pixels or matrices that were handed out
  double seconds = 0;         ///< from the first request for a batch to the end
  double wait_seconds = 0;    ///< of these, for a batch
  double step_seconds = 0;    ///< of these, in the simulated step
  double first_batch_seconds =
      0;  ///< to the first batch, with what sets up the epoch, and the loader if it is new
  std::vector<double> batch_seconds;  ///< from one batch to the next, the step included
};

/// Sums up epochs; first_batch_seconds is that of the first.
[[nodiscard]] EpochTimes sum_of(const std::vector<EpochTimes>& epochs);

[[nodiscard]] double samples_per_second(const EpochTimes& times);
[[nodiscard]] double ratings_per_second(const EpochTimes& times);
[[nodiscard]] double bytes_per_second(const EpochTimes& times);
[[nodiscard]] double wait_fraction(const EpochTimes& times);
/// The share of the time that was spent in the simulated step.
[[nodiscard]] double utilization(const EpochTimes& times);
[[nodiscard]] double batch_seconds_median(const EpochTimes& times);

}  // namespace chunkhit
