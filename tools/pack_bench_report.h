// What pack-bench prints: for people, and as JSON.
#pragma once

#include <string>
#include <vector>

#include "pack_bench_loop.h"

namespace chunkhit {

struct BenchReport {
  std::vector<EpochTimes> epochs;
  LoaderStats stats;                 ///< of all epochs
  std::uint64_t peak_rss_bytes = 0;  ///< of the process, mapped files included
  std::vector<std::string> warnings;
  bool has_rates = true;  ///< else an epoch is too short for them, as a warning says: people see none
};

/// Adds why the figures of a loop may not be what they seem.
void add_warnings(const BenchSpec& spec, const BenchLoop& loop, BenchReport& report);

void print_bench(const BenchSpec& spec, const BenchReport& report);
/// The totals are those of all epochs; `epochs` has each.
[[nodiscard]] std::string bench_json(const BenchSpec& spec, const BenchReport& report);

/// What the loader chose over an empty loop.
struct TuneReport {
  decltype(BenchSpec::loader) loader;  ///< with the threads, prefetch and cache in use at the end
  double samples_per_second = 0;       ///< of the epochs behind the last choice
  bool has_settled = false;            ///< else it was stopped before
  MixingInfo mixing;
  std::vector<std::string> tuning;  ///< LoaderStats::tuning
};

/// Prints the settings, and the loader as code.
void print_tuned(const BenchSpec& spec, const TuneReport& report);
[[nodiscard]] std::string tune_json(const BenchSpec& spec, const TuneReport& report);

}  // namespace chunkhit
