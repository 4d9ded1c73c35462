// The loop that pack-bench times: over the batches of a loader, touching nothing but their spans.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "chunkhit/reader.h"

namespace chunkhit {

/// What is timed.
struct BenchSpec {
  std::vector<std::string> paths;
  ImageLoaderOptions loader;
  std::uint32_t epochs = 2;  ///< the first checks hashes and fills the memory, the next shows the pace
  double step_seconds = 0;   ///< of a simulated training step, in which the CPU sleeps
  bool cold = false;         ///< before each epoch, drop the files from the page cache and open them anew
};

/// An epoch's times in seconds.
struct EpochTimes {
  std::uint64_t samples = 0;
  std::uint64_t bytes = 0;  ///< of pixels that were handed out
  double seconds = 0;       ///< from the first request for a batch to the end
  double wait_seconds = 0;  ///< of these, for a batch
  double step_seconds = 0;  ///< of these, in the simulated step
  double first_batch_seconds =
      0;  ///< to the first batch, with what sets up the epoch, and the loader if it is new
  std::vector<double> batch_seconds;  ///< from one batch to the next, the step included
};

/// Says after each batch whether the epoch goes on; given the samples and seconds of the epoch so far.
using GoOn = std::function<bool(std::uint64_t samples, double seconds)>;

/// Runs one epoch after the other.
class BenchLoop {
 public:
  explicit BenchLoop(BenchSpec spec) : spec_(std::move(spec)) {}
  /// Times the next epoch.
  EpochTimes run_epoch(const GoOn& go_on = {});
  /// Sums up all epochs so far; with `cold`, of all loaders.
  [[nodiscard]] LoaderStats stats() const;
  /// The loader of the last epoch; there is one once an epoch was run.
  [[nodiscard]] const ImageLoader& loader() const { return *loader_; }

 private:
  void close();

  BenchSpec spec_;
  std::optional<ImageLoader> loader_;
  std::optional<LoaderStats> closed_;  ///< of loaders that are gone
  std::uint64_t epoch_ = 0;
};

}  // namespace chunkhit
