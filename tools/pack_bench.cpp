// pack-bench: how fast a loader gives batches, and with which settings it gives most. Flags → spec → loop →
// report.
#include <cstdio>

#include "cli.h"
#include "kernel_memory.h"
#include "pack_bench_flags.h"
#include "pack_bench_loop.h"
#include "pack_bench_report.h"
#include "pack_bench_tune.h"

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

void run_tune(const BenchSpec& spec, bool json) {
  const TuneReport report = tune(spec, [json](const TuneTry& tried, double best_samples_per_second) {
    if (!json) print_try(tried, best_samples_per_second);
  });
  if (json)
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
      run_tune(spec, flags.json);
    else
      run_bench(spec, flags.json);
    return signal_exit_code();
  });
}
