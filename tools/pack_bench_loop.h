// The loop that pack-bench times: over the batches of a loader, touching nothing but their counts.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <variant>

#include "pack_bench_spec.h"
#include "pack_bench_times.h"

namespace chunkhit {

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
  // Of the last epoch's loader; there is one once an epoch was run.
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
