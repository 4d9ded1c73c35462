#include "pack_bench_report.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/words.h"
#include "pack_bench_flags.h"

namespace chunkhit {
namespace {

using Json = nlohmann::ordered_json;

/// What all epochs took together.
struct Totals {
  EpochTimes sum;
  double batch_seconds_median = 0;
  double first_batch_seconds = 0;  ///< of the first epoch
};

double per_second(double amount, double seconds) { return seconds > 0 ? amount / seconds : 0; }

double samples_per_second(const EpochTimes& epoch) {
  return per_second(static_cast<double>(epoch.samples), epoch.seconds);
}

double bytes_per_second(const EpochTimes& epoch) {
  return per_second(static_cast<double>(epoch.bytes), epoch.seconds);
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

Totals totals_of(const std::vector<EpochTimes>& epochs) {
  Totals totals;
  for (const EpochTimes& epoch : epochs) {
    totals.sum.samples += epoch.samples;
    totals.sum.bytes += epoch.bytes;
    totals.sum.seconds += epoch.seconds;
    totals.sum.wait_seconds += epoch.wait_seconds;
    totals.sum.step_seconds += epoch.step_seconds;
    totals.sum.batch_seconds.insert(totals.sum.batch_seconds.end(), epoch.batch_seconds.begin(),
                                    epoch.batch_seconds.end());
  }
  totals.batch_seconds_median = median(totals.sum.batch_seconds);
  totals.first_batch_seconds = epochs.empty() ? 0 : epochs.front().first_batch_seconds;
  return totals;
}

Json settings_json(const BenchSpec& spec) {
  const ImageLoaderOptions& loader = spec.loader;
  Json settings{{"paths", spec.paths},
                {"batch_size", loader.batch_size},
                {"shuffle", name_of(kShuffleNames, loader.shuffle)},
                {"seed", loader.seed},
                {"window_chunks", loader.window_chunks},
                {"echo", loader.echo},
                {"flip_horizontal", loader.augment.flip_horizontal},
                {"as", name_of(kPixelTypeNames, loader.as)},
                {"layout", loader.layout ? Json(name_of(kLayoutNames, *loader.layout)) : Json(nullptr)},
                {"residency", name_of(kResidencyNames, loader.residency)},
                {"memory_bytes", loader.memory_bytes},
                {"threads", loader.threads},
                {"prefetch", loader.prefetch},
                {"epochs", spec.epochs},
                {"step_ms", spec.step_seconds * 1000},
                {"cold", spec.cold}};
  return settings;
}

Json epoch_json(const EpochTimes& epoch) {
  return {{"samples", epoch.samples},
          {"batches", epoch.batch_seconds.size()},
          {"seconds", epoch.seconds},
          {"samples_per_second", samples_per_second(epoch)},
          {"bytes_per_second", bytes_per_second(epoch)},
          {"batch_seconds_median", median(epoch.batch_seconds)},
          {"first_batch_seconds", epoch.first_batch_seconds},
          {"wait_fraction", per_second(epoch.wait_seconds, epoch.seconds)},
          {"utilization", per_second(epoch.step_seconds, epoch.seconds)}};
}

Json stats_json(const LoaderStats& stats) {
  return {{"seconds", stats.seconds},
          {"wait_seconds", stats.wait_seconds},
          {"step_seconds", stats.step_seconds},
          {"fetch_seconds", stats.fetch_seconds},
          {"decode_seconds", stats.decode_seconds},
          {"assemble_seconds", stats.assemble_seconds},
          {"idle_seconds", stats.idle_seconds},
          {"batches", stats.batches},
          {"samples", stats.samples},
          {"batch_bytes", stats.batch_bytes},
          {"stored_bytes", stats.stored_bytes},
          {"corrupt_chunks", stats.corrupt_chunks},
          {"corrupt_samples", stats.corrupt_samples},
          {"residency", name_of(kResidencyNames, stats.residency)},
          {"threads", stats.threads}};
}

/// A path need not be UTF-8.
std::string dump(const Json& object) {
  return object.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

void print_epoch(std::size_t index, const EpochTimes& epoch) {
  std::printf("epoch %-4zu %12s samples/s  %6.2f GB/s  batch %8.3f ms  first %8.3f ms  waited %5.1f %%\n",
              index, count_text(static_cast<std::uint64_t>(samples_per_second(epoch))).c_str(),
              bytes_per_second(epoch) / 1e9, median(epoch.batch_seconds) * 1e3,
              epoch.first_batch_seconds * 1e3, 100 * per_second(epoch.wait_seconds, epoch.seconds));
}

Json try_json(const TuneTry& tried) {
  static constexpr std::array<std::string_view, 3> kEndNames{"measured", "gave_up", "refused"};
  Json object{{"threads", tried.setting.threads},
              {"prefetch", tried.setting.prefetch},
              {"window_chunks", tried.setting.window_chunks},
              {"residency", name_of(kResidencyNames, tried.setting.residency)},
              {"samples_per_second", tried.samples_per_second},
              {"end", name_of(kEndNames, tried.end)},
              {"again", tried.is_again}};
  if (!tried.reason.empty()) object["reason"] = tried.reason;
  return object;
}

}  // namespace

void print_bench(const BenchSpec& spec, const BenchReport& report) {
  const Totals totals = totals_of(report.epochs);
  for (std::size_t index = 0; index < report.epochs.size(); ++index) print_epoch(index, report.epochs[index]);
  std::printf("all        %12s samples/s  %6.2f GB/s  batch %8.3f ms (median)  waited %5.1f %%\n",
              count_text(static_cast<std::uint64_t>(samples_per_second(totals.sum))).c_str(),
              bytes_per_second(totals.sum) / 1e9, totals.batch_seconds_median * 1e3,
              100 * report.stats.wait_fraction());
  if (spec.step_seconds > 0)
    std::printf("steps      of %.3f ms: utilization %.1f %%\n", spec.step_seconds * 1e3,
                100 * per_second(totals.sum.step_seconds, totals.sum.seconds));
  std::printf("peak rss   %s, mapped files included\n",
              bytes_text(static_cast<double>(report.peak_rss_bytes)).c_str());
  std::fflush(stdout);
  std::cout << report.stats << std::flush;
  if (spec.step_seconds == 0)
    std::printf("An empty loop does nothing but wait; --step-ms tells how it is with a training step.\n");
}

std::string bench_json(const BenchSpec& spec, const BenchReport& report) {
  const Totals totals = totals_of(report.epochs);
  Json epochs = Json::array();
  for (const EpochTimes& epoch : report.epochs) epochs.push_back(epoch_json(epoch));
  const Json object{{"samples_per_second", samples_per_second(totals.sum)},
                    {"bytes_per_second", bytes_per_second(totals.sum)},
                    {"batch_seconds_median", totals.batch_seconds_median},
                    {"first_batch_seconds", totals.first_batch_seconds},
                    {"wait_fraction", report.stats.wait_fraction()},
                    {"utilization", per_second(totals.sum.step_seconds, totals.sum.seconds)},
                    {"chunk_hits", report.stats.chunk_hits},
                    {"chunk_misses", report.stats.chunk_misses},
                    {"chunk_fetches", report.stats.chunk_fetches},
                    {"peak_rss_bytes", report.peak_rss_bytes},
                    {"verdict", report.stats.verdict()},
                    {"settings", settings_json(spec)},
                    {"epochs", epochs},
                    {"stats", stats_json(report.stats)}};
  return dump(object);
}

void print_try(const TuneTry& tried, double best_samples_per_second) {
  std::printf("threads %-4u prefetch %-4u window %-5u %-10s  ", tried.setting.threads, tried.setting.prefetch,
              tried.setting.window_chunks, name_of(kResidencyNames, tried.setting.residency).c_str());
  if (tried.end == TuneEnd::refused) {
    std::printf("not possible: %s\n", printable_text(tried.reason).c_str());
  } else {
    std::printf(
        "%12s samples/s  %+6.1f %%%s\n",
        count_text(static_cast<std::uint64_t>(tried.samples_per_second)).c_str(),
        best_samples_per_second > 0 ? 100 * (tried.samples_per_second / best_samples_per_second - 1) : 0,
        tried.is_again                  ? ", again"
        : tried.end == TuneEnd::gave_up ? ", gave up"
                                        : "");
  }
  std::fflush(stdout);
}

void print_tuned(const BenchSpec& spec, const TuneReport& report) {
  std::printf("best of %zu tries: %s samples/s\n", report.tries.size(),
              count_text(static_cast<std::uint64_t>(report.best.samples_per_second)).c_str());
  if (spec.loader.shuffle == Shuffle::window)
    std::printf("mixing: %s a window, %.2f %% of neighbours from one chunk\n",
                count_text(report.mixing.chunks_in_window, "chunk").c_str(),
                100 * report.mixing.same_chunk_neighbors);
  std::printf("\n%s", loader_snippet(spec.paths, report.best.setting).c_str());
}

std::string tune_json(const BenchSpec& spec, const TuneReport& report) {
  Json tries = Json::array();
  for (const TuneTry& tried : report.tries) tries.push_back(try_json(tried));
  const Json object{{"best", try_json(report.best)},
                    {"same_chunk_neighbors", report.mixing.same_chunk_neighbors},
                    {"snippet", loader_snippet(spec.paths, report.best.setting)},
                    {"settings", settings_json(spec)},
                    {"tries", tries}};
  return dump(object);
}

}  // namespace chunkhit
