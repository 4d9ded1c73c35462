// What pack-bench times: a loop over the batches of a loader, touching nothing but their counts.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "chunkhit/image_loader.h"
#include "chunkhit/sparse_loader.h"

namespace chunkhit {

/// What is timed: a loader of images or of rows of matrices, and how it is run.
struct BenchSpec {
  std::vector<std::string> paths;
  std::variant<ImageLoaderOptions, SparseLoaderOptions> loader;
  std::uint32_t epochs = 2;  ///< the first checks hashes and fills the memory, the next shows the pace
  double step_seconds = 0;   ///< of a simulated training step, in which the CPU sleeps
  bool cold = false;         ///< before each epoch, drop the files from the page cache and reopen them
  [[nodiscard]] bool is_of_matrices() const { return std::holds_alternative<SparseLoaderOptions>(loader); }
};

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

/// Returns after each batch whether to continue the epoch; given the samples and seconds of the epoch so far.
using GoOn = std::function<bool(std::uint64_t samples, double seconds)>;

/// Runs one epoch after the other.
class BenchLoop {
 public:
  explicit BenchLoop(BenchSpec spec) : spec_(std::move(spec)) {}
  /// Times the next epoch.
  EpochTimes run_epoch(const GoOn& go_on = {});
  /// Sums up all epochs so far; with `cold`, of all loaders.
  [[nodiscard]] LoaderStats stats() const;
  // Of the last epoch's loader; there is one while and after an epoch was run.
  [[nodiscard]] std::uint64_t batch_count() const;
  [[nodiscard]] MixingInfo mixing() const;
  /// With `cold`: what the kernel did not drop, before the epoch with most of it.
  [[nodiscard]] std::uint64_t cached_bytes() const { return cached_bytes_; }

 private:
  void close();
  template <class Loader>
  EpochTimes time_epoch(Loader& loader, const GoOn& go_on);

  BenchSpec spec_;
  std::optional<std::variant<ImageLoader, SparseLoader>> loader_;
  std::optional<LoaderStats> closed_;  ///< of loaders that are gone
  std::uint64_t epoch_ = 0;
  std::uint64_t cached_bytes_ = 0;
};

}  // namespace chunkhit
