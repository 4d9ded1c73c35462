#include "pack_bench_report.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <iostream>

#include "base/words.h"
#include "cli.h"

namespace chunkhit {
namespace {

std::string rate_text(double per_second) { return count_text(static_cast<std::uint64_t>(per_second)); }

void print_epoch(std::size_t index, const EpochTimes& epoch) {
  std::printf("epoch %-4zu %12s samples/s  %6.2f GB/s  batch %8.3f ms  first %8.3f ms  waited %5.1f %%\n",
              index, rate_text(samples_per_second(epoch)).c_str(), bytes_per_second(epoch) / 1e9,
              batch_seconds_median(epoch) * 1e3, epoch.first_batch_seconds * 1e3, 100 * wait_fraction(epoch));
}

}  // namespace

std::vector<std::string> bench_warnings(const BenchSpec& spec, const BenchLoop& loop) {
  std::vector<std::string> warnings;
  if (stop_requested) warnings.emplace_back("stopped by a signal: the last epoch is not whole");
  const std::uint64_t ahead = std::max(spec.loader.prefetch, loop.stats().threads);
  if (loop.batch_count() <= ahead && !spec.cold)
    warnings.push_back("an epoch has " + count_text(loop.batch_count()) +
                       (loop.batch_count() == 1 ? " batch" : " batches") + ", and up to " +
                       count_text(ahead) +
                       " are prepared before its time starts, so that rates say little; use a "
                       "smaller --batch-size or a larger pack");
  if (loop.cached_bytes() > 0)
    warnings.push_back(bytes_text(static_cast<double>(loop.cached_bytes())) +
                       " of the files stayed in the page cache: another process maps them, they are in a "
                       "tmpfs, or they are being written");
  return warnings;
}

void print_bench(const BenchSpec& spec, const BenchReport& report) {
  const EpochTimes all = sum_of(report.epochs);
  for (std::size_t index = 0; index < report.epochs.size(); ++index) print_epoch(index, report.epochs[index]);
  std::printf("all        %12s samples/s  %6.2f GB/s  batch %8.3f ms (median)  waited %5.1f %%\n",
              rate_text(samples_per_second(all)).c_str(), bytes_per_second(all) / 1e9,
              batch_seconds_median(all) * 1e3, 100 * report.stats.wait_fraction());
  if (spec.is_of_matrices())
    std::printf("ratings    %12s a second; a sample is a row\n", rate_text(ratings_per_second(all)).c_str());
  if (spec.step_seconds > 0)
    std::printf("steps      of %.3f ms: utilization %.1f %%\n", spec.step_seconds * 1e3,
                100 * utilization(all));
  std::printf("peak rss   %s\n", bytes_text(static_cast<double>(report.peak_rss_bytes)).c_str());
  std::fflush(stdout);
  std::cout << report.stats << std::flush;
  if (spec.step_seconds == 0)
    std::printf("An empty loop only waits; --step-ms N simulates a training step.\n");
  for (const std::string& warning : report.warnings) std::printf("note: %s\n", warning.c_str());
}

void print_try(const TuneTry& tried, double best_samples_per_second) {
  std::printf("threads %-4u prefetch %-4u window %-5u %-10s  ", tried.setting.threads, tried.setting.prefetch,
              tried.setting.window_chunks, name_of(kCacheNames, tried.setting.cache).c_str());
  if (tried.end == TuneEnd::refused) {
    std::printf("not possible: %s\n", printable_text(tried.reason).c_str());
  } else if (tried.end == TuneEnd::stopped) {
    std::printf("interrupted before the first result\n");
  } else {
    std::printf(
        "%12s samples/s  %+6.1f %%%s%s\n", rate_text(tried.samples_per_second).c_str(),
        best_samples_per_second > 0 ? 100 * (tried.samples_per_second / best_samples_per_second - 1) : 0,
        tried.end == TuneEnd::gave_up ? ", gave up" : "", tried.is_again ? ", again" : "");
  }
  std::fflush(stdout);
}

void print_tuned(const BenchSpec& spec, const TuneReport& report) {
  if (stop_requested) std::printf("note: stopped by a signal before the search was over\n");
  if (report.best.samples_per_second <= 0) {
    std::printf("nothing was measured\n");
    return;
  }
  std::printf("best of %zu tries: %s samples/s\n", report.tries.size(),
              rate_text(report.best.samples_per_second).c_str());
  if (spec.loader.shuffle == Shuffle::window)
    std::printf("mixing: %s a window, %.2f %% of neighbours from one chunk\n",
                count_text(report.best.mixing.chunks_in_window, "chunk").c_str(),
                100 * report.best.mixing.same_chunk_neighbors);
  const LoaderSnippet snippet = loader_snippet(spec, report.best.setting);
  std::printf("\n%s\n%s", snippet.cpp.c_str(), snippet.python.c_str());
}

}  // namespace chunkhit
