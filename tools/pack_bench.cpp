// pack-bench: how fast a loader gives batches, and which settings it chooses. Flags → spec → loop →
// report.
#include <cstdio>
#include <string>
#include <vector>

#include "chunkhit/error.h"
#include "cli.h"
#include "kernel_memory.h"
#include "pack_bench_flags.h"
#include "pack_bench_loop.h"
#include "pack_bench_report.h"

namespace chunkhit {
namespace {

constexpr const char* kDescription = "Times an empty loop over the batches of a pack, epoch by epoch.";
constexpr const char* kExamples =
    "Examples, the second with a training step of 20 ms:\n"
    "  pack-bench train --batch-size 100 --shuffle window --resized-crop 224 --dtype float32 --tune\n"
    "  pack-bench ml20m/train --shuffle global --format csr --step-ms 20";

void run_bench(const BenchSpec& spec, bool json) {
  BenchLoop loop(spec);
  BenchReport report;
  do {
    report.epochs.push_back(loop.run_epoch([](std::uint64_t, double) { return !stop_requested; }));
  } while (report.epochs.size() < spec.epochs && !stop_requested);
  report.stats = loop.stats();
  report.peak_rss_bytes = peak_rss_bytes();
  report.warnings = bench_warnings(spec, loop);
  if (json)
    std::fputs(bench_json(spec, report).c_str(), stdout);
  else
    print_bench(spec, report);
}

constexpr double kMinRateSeconds = 1;  // epochs are repeated until the settled loader ran as long
constexpr double kMaxRateSeconds = 5;

bool has_settled(const BenchLoop& loop) {
  const std::vector<std::string> tuning = loop.stats().tuning;
  return !tuning.empty() && tuning.back().find(": settled on ") != std::string::npos;
}

/// The pace of the loader as it is now.
double samples_per_second_now(BenchLoop& loop) {
  std::vector<EpochTimes> epochs;
  double seconds = 0;
  while (seconds < kMinRateSeconds && !stop_requested) {
    epochs.push_back(loop.run_epoch([&](std::uint64_t, double in_epoch) {
      return !stop_requested && seconds + in_epoch < kMaxRateSeconds;
    }));
    seconds += epochs.back().seconds;
  }
  return samples_per_second(sum_of(epochs));
}

/// Lets the loader choose threads and prefetch, unless they are given, until it has settled.
void run_tune(BenchSpec spec, const PackBenchFlags& flags) {
  if (flags.threads.empty()) spec.loader.threads = kAutomatic;
  if (flags.prefetch.empty()) spec.loader.prefetch = kAutomatic;
  const bool is_given = spec.loader.threads != kAutomatic && spec.loader.prefetch != kAutomatic;
  if (is_given)
    throw Error(ErrorCode::usage, "--tune: chooses --threads and --prefetch; give one of them at most");
  BenchLoop loop(spec);
  TuneReport report;
  while (!stop_requested && !report.has_settled) {
    loop.run_epoch([&](std::uint64_t, double) { return !stop_requested && !has_settled(loop); });
    report.has_settled = has_settled(loop);
  }
  if (report.has_settled) report.samples_per_second = samples_per_second_now(loop);
  const LoaderStats stats = loop.stats();
  report.tuning = stats.tuning;
  report.mixing = loop.mixing();
  report.setting = spec.loader;
  report.setting.threads = stats.threads;
  report.setting.prefetch = stats.prefetch;
  report.setting.cache = stats.cache;
  if (flags.json)
    std::fputs(tune_json(spec, report).c_str(), stdout);
  else
    print_tuned(spec, report);
}

}  // namespace
}  // namespace chunkhit

int main(int argc, char** argv) {  // NOLINT(bugprone-exception-escape): only without memory for the flags
  using namespace chunkhit;
  CLI::App app(kDescription, "pack-bench");
  PackBenchFlags flags;
  add_pack_bench_flags(app, flags);
  add_common_flags(app, "Run");
  app.footer(kExamples);
  return run_command(app, argc, argv, [&] {
    handle_signals();
    const BenchSpec spec = bench_spec(flags);
    if (flags.tune)
      run_tune(spec, flags);
    else
      run_bench(spec, flags.json);
    return signal_exit_code();
  });
}
