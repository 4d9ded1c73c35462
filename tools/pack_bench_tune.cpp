#include "pack_bench_tune.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/cpu.h"
#include "chunkhit/error.h"

namespace chunkhit {
namespace {

constexpr double kGain = 1.05;    // what a setting must be better by
constexpr double kBehind = 0.85;  // of the best pace: a try that is slower gives up
// Batches come in lumps, a window at a time: before that a pace says nothing.
constexpr double kJudgeSeconds = 2;
constexpr double kLeastSeconds = 0.5;      // epochs are repeated until a try took as long
constexpr double kMostSeconds = 10;        // long epochs are cut off; the first one, too
constexpr std::uint32_t kLeastWindow = 8;  // chunks; smaller ones hardly mix

/// A number that is doubled and halved.
struct NumberKnob {
  std::uint32_t LoaderSetting::*value;
  std::uint32_t least;
  std::uint32_t most;
};

/// Whether two settings are the same, as far as they are searched.
bool same_setting(const LoaderSetting& a, const LoaderSetting& b) {
  return a.threads == b.threads && a.prefetch == b.prefetch && a.window_chunks == b.window_chunks &&
         a.residency == b.residency;
}

std::optional<LoaderSetting> step(const LoaderSetting& from, const NumberKnob& knob, bool up) {
  LoaderSetting next = from;
  const std::uint64_t now = std::min(from.*knob.value, knob.most);
  if (up ? now >= knob.most : now <= knob.least) return std::nullopt;
  next.*knob.value = static_cast<std::uint32_t>(up ? std::min<std::uint64_t>(2 * now, knob.most)
                                                   : std::max<std::uint64_t>(now / 2, knob.least));
  return next;
}

class Search {
 public:
  Search(const BenchSpec& spec, const OnTry& on_try) : spec_(spec), on_try_(on_try) {}

  TuneReport run() {
    begin();
    while (climb_numbers() || climb_residency()) {
    }
    return std::move(report_);
  }

 private:
  void begin();
  [[nodiscard]] bool climb_numbers();
  [[nodiscard]] bool climb(const NumberKnob& knob);
  [[nodiscard]] bool climb_residency();
  [[nodiscard]] bool improves(const LoaderSetting& setting);
  void measure_again(TuneTry& tried);
  void record(const TuneTry& tried);
  [[nodiscard]] TuneTry measure(const LoaderSetting& setting, double pace_to_beat);
  void time_epochs(BenchLoop& loop, TuneTry& tried, double pace_to_beat) const;

  const BenchSpec& spec_;
  const OnTry& on_try_;
  TuneReport report_;
  MixingInfo mixing_;  // of the last try
  LoaderStats stats_;  // the same
};

/// Measures after a first epoch, which checks hashes and fills the memory; cold epochs are all alike.
void Search::time_epochs(BenchLoop& loop, TuneTry& tried, double pace_to_beat) const {
  if (!spec_.cold)
    static_cast<void>(loop.run_epoch([](std::uint64_t, double seconds) { return seconds < kMostSeconds; }));
  std::uint64_t samples = 0;
  double seconds = 0;
  const auto go_on = [&](std::uint64_t more_samples, double more_seconds) {
    const double taken = seconds + more_seconds;
    const double least_pace = kBehind * pace_to_beat;
    const auto in_epoch = static_cast<double>(loop.batch_count() * tried.setting.batch_size);
    // Even if all the rest of the try came at once.
    const bool is_lost = taken * least_pace > std::max(in_epoch, kLeastSeconds * pace_to_beat);
    const bool is_slow =
        taken > kJudgeSeconds && static_cast<double>(samples + more_samples) < taken * least_pace;
    if (pace_to_beat > 0 && (is_lost || is_slow)) tried.end = TuneEnd::gave_up;
    return tried.end == TuneEnd::measured && taken < kMostSeconds;
  };
  while (seconds < kLeastSeconds && tried.end == TuneEnd::measured) {
    const EpochTimes epoch = loop.run_epoch(go_on);
    samples += epoch.samples;
    seconds += epoch.seconds;
  }
  tried.samples_per_second = static_cast<double>(samples) / seconds;
}

TuneTry Search::measure(const LoaderSetting& setting, double pace_to_beat) {
  TuneTry tried{setting, 0, TuneEnd::measured, {}};
  BenchSpec spec = spec_;
  spec.loader = setting;
  BenchLoop loop(std::move(spec));
  try {
    time_epochs(loop, tried, pace_to_beat);
    mixing_ = loop.mixing();
    stats_ = loop.stats();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::usage || report_.tries.empty()) throw;
    tried.end = TuneEnd::refused;
    tried.reason = error.what();
  }
  return tried;
}

void Search::begin() {
  TuneTry first = measure(spec_.loader, 0);
  first.setting.threads = stats_.threads;
  first.setting.residency = stats_.residency;
  report_.mixing = mixing_;
  record(first);
  report_.best = std::move(first);
}

void Search::record(const TuneTry& tried) {
  report_.tries.push_back(tried);
  on_try_(tried, report_.best.samples_per_second);
}

void Search::measure_again(TuneTry& tried) {
  TuneTry again = measure(tried.setting, 0);
  again.is_again = true;
  record(again);
  tried.samples_per_second = std::max(tried.samples_per_second, again.samples_per_second);
}

bool Search::improves(const LoaderSetting& setting) {
  for (const TuneTry& tried : report_.tries)
    if (same_setting(tried.setting, setting)) return false;
  TuneTry tried = measure(setting, report_.best.samples_per_second);
  const MixingInfo mixing = mixing_;
  record(tried);
  const auto is_ahead = [&] {
    return tried.end == TuneEnd::measured &&
           tried.samples_per_second >= kGain * report_.best.samples_per_second;
  };
  if (!is_ahead()) return false;
  // Other programs only ever slow a try down: of two measures the better one counts.
  measure_again(report_.best);
  measure_again(tried);
  if (!is_ahead()) return false;
  report_.best = std::move(tried);
  report_.mixing = mixing;
  return true;
}

bool Search::climb(const NumberKnob& knob) {
  for (const bool up : {true, false}) {
    bool moved = false;
    for (auto next = step(report_.best.setting, knob, up); next && improves(*next);
         next = step(report_.best.setting, knob, up))
      moved = true;
    if (moved) return true;
  }
  return false;
}

bool Search::climb_numbers() {
  // More threads than CPUs help where reading waits for storage.
  bool moved = climb({&LoaderSetting::threads, 1, 4 * allowed_cpus()});
  moved = climb({&LoaderSetting::prefetch, 1, 64}) || moved;
  if (spec_.loader.shuffle != Shuffle::window) return moved;
  const auto chunks = static_cast<std::uint32_t>(std::min<std::uint64_t>(report_.mixing.chunks, INT32_MAX));
  if (chunks <= kLeastWindow) return moved;
  return climb({&LoaderSetting::window_chunks, kLeastWindow, chunks}) || moved;
}

bool Search::climb_residency() {
  bool moved = false;
  for (const Residency residency : {Residency::decoded, Residency::compressed, Residency::stream}) {
    LoaderSetting next = report_.best.setting;
    next.residency = residency;
    moved = improves(next) || moved;
  }
  return moved;
}

}  // namespace

TuneReport tune(const BenchSpec& spec, const OnTry& on_try) { return Search(spec, on_try).run(); }

}  // namespace chunkhit
