#include "pack_bench_tune.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>

#include "base/cpu.h"
#include "chunkhit/error.h"
#include "cli.h"

namespace chunkhit {
namespace {

constexpr double kRoundGain = 1.05;  // what a round over all knobs must gain for another one
constexpr double kMoveGain = 1.02;   // less may be noise, and is not worth a change
// More threads than CPUs help only where reading waits for storage, and then by a lot; elsewhere they take
// the training's CPUs, and a small gain of theirs is noise.
constexpr double kOversubscribedGain = 1.15;
constexpr double kBehind = 0.85;  // of the best pace: a try that is slower gives up, and its direction ends
// Batches come in lumps, a window at a time: before that a pace says nothing.
constexpr double kJudgeSeconds = 2;
constexpr double kMinSeconds = 0.5;      // epochs are repeated until a try took as long
constexpr double kMaxSeconds = 5;        // long epochs are cut off; the first one, too
constexpr double kSearchSeconds = 240;   // no setting is tried for the first time after these,
constexpr double kMaxRunSeconds = 360;   // and none at all after these
constexpr std::uint32_t kStep = 4;       // a smaller one is hardly seen in the noise
constexpr std::uint32_t kMinWindow = 8;  // chunks; smaller ones hardly mix
constexpr std::size_t kFinalists = 5;
constexpr int kFinalRounds = 7;

/// A number that is multiplied and divided by kStep.
struct NumberKnob {
  std::uint32_t LoaderSetting::*value;
  std::uint32_t least;
  std::uint32_t most;
};

/// Whether two settings are the same, as far as they are searched.
bool same_setting(const LoaderSetting& a, const LoaderSetting& b) {
  return a.threads == b.threads && a.prefetch == b.prefetch && a.window_chunks == b.window_chunks &&
         a.cache == b.cache;
}

std::optional<LoaderSetting> step(const LoaderSetting& from, const NumberKnob& knob, bool up) {
  LoaderSetting next = from;
  const std::uint64_t now = std::min(from.*knob.value, knob.most);
  if (up ? now >= knob.most : now <= knob.least) return std::nullopt;
  next.*knob.value = static_cast<std::uint32_t>(up ? std::min<std::uint64_t>(kStep * now, knob.most)
                                                   : std::max<std::uint64_t>(now / kStep, knob.least));
  return next;
}

bool is_oversubscribed(const TuneTry& tried) { return tried.setting.threads > allowed_cpus(); }

/// Returns the factor by which `tried` must be faster than `best` to replace it.
double needed_gain(const TuneTry& tried, const TuneTry& best) {
  return is_oversubscribed(tried) && !is_oversubscribed(best) ? kOversubscribedGain : kMoveGain;
}

bool is_slower(const TuneTry& a, const TuneTry& b) { return a.samples_per_second < b.samples_per_second; }

/// Hill climbing over threads, prefetch, window and cache, one knob at a time, until a round gains little;
/// then the best settings are measured again in turns.
class Search {
 public:
  Search(const BenchSpec& spec, const OnTry& on_try) : spec_(spec), on_try_(on_try) {}

  TuneReport run() {
    begin();
    for (double before = 0; goes_on() && report_.best.samples_per_second >= kRoundGain * before;) {
      before = report_.best.samples_per_second;
      climb_numbers();
      climb_cache();
    }
    compare_finalists();
    return std::move(report_);
  }

 private:
  void begin();
  void climb_numbers();
  void climb(const NumberKnob& knob);
  void climb_cache();
  void move_to(const std::optional<TuneTry>& tried);
  void compare_finalists();
  [[nodiscard]] bool measure_again(const std::vector<TuneTry>& best, std::vector<std::vector<double>>& rates);
  [[nodiscard]] std::vector<TuneTry> finalists() const;
  [[nodiscard]] const TuneTry* find(const LoaderSetting& setting) const;
  [[nodiscard]] std::optional<TuneTry> result_of(const LoaderSetting& setting);
  void record(const TuneTry& tried);
  [[nodiscard]] TuneTry measure(const LoaderSetting& setting, double pace_to_beat);
  void time_epochs(BenchLoop& loop, TuneTry& tried, double pace_to_beat) const;
  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }
  [[nodiscard]] bool goes_on() const { return !stop_requested && seconds() < kSearchSeconds; }

  const BenchSpec& spec_;
  const OnTry& on_try_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  TuneReport report_;
  LoaderStats stats_;  // of the last try
};

/// Measures after a first epoch, which checks hashes and fills the cache. Cold epochs need no such epoch.
void Search::time_epochs(BenchLoop& loop, TuneTry& tried, double pace_to_beat) const {
  if (!spec_.cold)
    static_cast<void>(loop.run_epoch(
        [](std::uint64_t, double seconds) { return !stop_requested && seconds < kMaxSeconds; }));
  std::uint64_t samples = 0;
  double seconds = 0;
  const auto go_on = [&](std::uint64_t more_samples, double more_seconds) {
    const double taken = seconds + more_seconds;
    const double min_pace = kBehind * pace_to_beat;
    const auto in_epoch = static_cast<double>(loop.batch_count() * tried.setting.batch_size);
    // The try is lost if it could not catch up even if the rest of the epoch took no time.
    const bool is_lost = taken >= kMinSeconds && static_cast<double>(samples) + in_epoch < taken * min_pace;
    const bool is_slow =
        taken > kJudgeSeconds && static_cast<double>(samples + more_samples) < taken * min_pace;
    if (pace_to_beat > 0 && (is_lost || is_slow)) tried.end = TuneEnd::gave_up;
    // What ran for as long as a try must is measured.
    if (stop_requested && taken < kMinSeconds) tried.end = TuneEnd::stopped;
    return !stop_requested && tried.end == TuneEnd::measured && taken < kMaxSeconds;
  };
  while (seconds < kMinSeconds && tried.end == TuneEnd::measured) {
    const EpochTimes epoch = loop.run_epoch(go_on);
    samples += epoch.samples;
    seconds += epoch.seconds;
  }
  if (tried.end != TuneEnd::stopped) tried.samples_per_second = static_cast<double>(samples) / seconds;
}

TuneTry Search::measure(const LoaderSetting& setting, double pace_to_beat) {
  TuneTry tried{.setting = setting};
  BenchSpec spec = spec_;
  spec.loader = setting;
  BenchLoop loop(std::move(spec));
  try {
    time_epochs(loop, tried, pace_to_beat);
    tried.mixing = loop.mixing();
    stats_ = loop.stats();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::usage || report_.tries.empty()) throw;
    tried.end = TuneEnd::refused;
    tried.reason = flag_text(error.what());
  }
  return tried;
}

void Search::begin() {
  TuneTry first = measure(spec_.loader, 0);
  first.setting.threads = stats_.threads;
  first.setting.prefetch = stats_.prefetch;
  first.setting.cache = stats_.cache;
  record(first);
  report_.best = std::move(first);
}

void Search::record(const TuneTry& tried) {
  report_.tries.push_back(tried);
  on_try_(tried, report_.best.samples_per_second);
}

const TuneTry* Search::find(const LoaderSetting& setting) const {
  for (const TuneTry& each : report_.tries)
    if (same_setting(each.setting, setting)) return &each;
  return nullptr;
}

/// Returns the result of a setting, measured now if it was not before; nullopt once the search is over.
std::optional<TuneTry> Search::result_of(const LoaderSetting& setting) {
  if (const TuneTry* const before = find(setting)) return *before;
  if (!goes_on()) return std::nullopt;
  record(measure(setting, report_.best.samples_per_second));
  return report_.tries.back();
}

void Search::move_to(const std::optional<TuneTry>& tried) {
  if (tried && tried->end == TuneEnd::measured &&
      tried->samples_per_second >= needed_gain(*tried, report_.best) * report_.best.samples_per_second)
    report_.best = *tried;
}

/// Steps in both directions, also over plateaus, until a try is far behind the best.
void Search::climb(const NumberKnob& knob) {
  const LoaderSetting start = report_.best.setting;
  for (const bool up : {true, false})
    for (auto next = step(start, knob, up); next; next = step(*next, knob, up)) {
      const std::optional<TuneTry> there = result_of(*next);
      move_to(there);
      const bool is_behind = there && there->samples_per_second < kBehind * report_.best.samples_per_second;
      if (!there || there->end != TuneEnd::measured || is_behind) break;
    }
}

void Search::climb_numbers() {
  // More threads than CPUs help where reading waits for storage.
  climb({&LoaderSetting::threads, 1, kStep * allowed_cpus()});
  climb({&LoaderSetting::prefetch, 1, 64});
  if (spec_.loader.shuffle != Shuffle::window) return;
  const auto chunks =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(report_.best.mixing.chunks, INT32_MAX));
  if (chunks > kMinWindow) climb({&LoaderSetting::window_chunks, kMinWindow, chunks});
}

void Search::climb_cache() {
  const LoaderSetting start = report_.best.setting;
  for (const Cache cache : {Cache::decoded, Cache::compressed, Cache::none}) {
    LoaderSetting next = start;
    next.cache = cache;
    move_to(result_of(next));
  }
}

/// Returns the fastest settings, fastest first, at least one of them with no more threads than CPUs.
std::vector<TuneTry> Search::finalists() const {
  std::vector<TuneTry> measured;
  for (const TuneTry& each : report_.tries)
    if (each.end == TuneEnd::measured) measured.push_back(each);
  std::stable_sort(measured.begin(), measured.end(),
                   [](const TuneTry& a, const TuneTry& b) { return is_slower(b, a); });
  std::vector<TuneTry> best;
  for (const TuneTry& each : measured)
    if (best.size() < kFinalists && each.samples_per_second >= kBehind * measured.front().samples_per_second)
      best.push_back(each);
  const auto within_cpus = std::ranges::find_if_not(measured, is_oversubscribed);
  if (within_cpus != measured.end() && std::ranges::all_of(best, is_oversubscribed))
    best.push_back(*within_cpus);
  return best;
}

/// Measures each setting once more; returns false if it was interrupted or ran out of time.
bool Search::measure_again(const std::vector<TuneTry>& best, std::vector<std::vector<double>>& rates) {
  std::vector<double> round;
  for (const TuneTry& each : best) {
    if (stop_requested || seconds() > kMaxRunSeconds) return false;
    TuneTry again = measure(each.setting, 0);
    again.is_again = true;
    record(again);
    round.push_back(again.samples_per_second);
  }
  for (std::size_t i = 0; i < best.size(); ++i) rates[i].push_back(round[i]);
  return true;
}

/// Measures the finalists in turns and takes the best median, because a single measurement is noisy.
void Search::compare_finalists() {
  std::vector<TuneTry> best = finalists();
  if (best.size() < 2) return;
  std::vector<std::vector<double>> rates(best.size());
  int rounds = 0;
  while (rounds < kFinalRounds && measure_again(best, rates)) ++rounds;
  if (rounds == 0) return;
  for (std::size_t i = 0; i < best.size(); ++i) {
    std::sort(rates[i].begin(), rates[i].end());
    best[i].samples_per_second = rates[i][rates[i].size() / 2];
  }
  report_.best = best_of(best);
}

}  // namespace

const TuneTry& best_of(std::span<const TuneTry> tries) {
  const TuneTry* best = nullptr;
  const TuneTry* within_cpus = nullptr;
  for (const TuneTry& each : tries) {
    if (best == nullptr || is_slower(*best, each)) best = &each;
    if (!is_oversubscribed(each) && (within_cpus == nullptr || is_slower(*within_cpus, each)))
      within_cpus = &each;
  }
  if (within_cpus == nullptr) return *best;
  return best->samples_per_second < needed_gain(*best, *within_cpus) * within_cpus->samples_per_second
             ? *within_cpus
             : *best;
}

TuneReport tune(const BenchSpec& spec, const OnTry& on_try) { return Search(spec, on_try).run(); }

}  // namespace chunkhit
