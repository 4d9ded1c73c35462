#include "read/tuner.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <utility>

#include "base/words.h"

namespace chunkhit {
namespace {

constexpr double kWaiting = 0.02;  // share of the time; training that waits less has nothing to gain

constexpr double kIdle = 0.03;  // share of the threads' time; less of it more batches ahead cannot use

constexpr double kSpare = 0.05;  // share of the time that fewer threads must have left

// A window is long against the noise of single batches, and short against the limits of a climb.
constexpr double kWindowSeconds = 0.2;
constexpr double kWindowNoise = 0.05;  // windows that differ more become longer
constexpr std::uint64_t kWindowBatches = 8;
constexpr double kLongSeconds = 0.8;  // of slow batches four are enough
constexpr std::uint64_t kLongBatches = 4;
constexpr double kWatchSeconds = 0.5;
constexpr std::uint64_t kWatchBatches = 16;

// After a change the batches that were made before it are left out.
constexpr std::uint64_t kMaxSkipped = 20;
constexpr double kSkippedSeconds = 0.01;

constexpr std::uint64_t kFirstWindows = 3;  // of the base, before the first trial of a climb
constexpr std::size_t kMinWindows = 4;      // of a trial: two pairs
constexpr std::size_t kMaxWindows = 12;     // six pairs
// A climb ends once both have passed; the trial in hand needs some more of the 200 batches and 20 s.
constexpr std::uint64_t kMaxClimbBatches = 170;
constexpr double kMaxClimbSeconds = 17;

// Logarithms of how many times as fast a candidate must be.
constexpr double kMinGain = 0.02;
constexpr double kMinGainOverCpus = 0.05;  // threads that training's CPUs pay for
constexpr double kMaxLoss = 0.02;          // of fewer threads, all such steps of a climb together
// And how many times its standard error a gain must be. Batches ahead cost nothing but memory, which is
// bounded; threads cost CPUs.
constexpr double kErrorsOfThreads = 1.5;
constexpr double kErrorsOfPrefetch = 1;
constexpr double kGiveUp = -0.4;  // after one window

// Noise of a window, until some have been seen.
constexpr double kFirstNoise = 0.02;
constexpr double kFirstNoiseCount = 2;
constexpr double kMaxNoiseCount = 30;

constexpr double kBand = 0.2;       // logarithm of a batch's time over the usual one
constexpr double kWaitBand = 0.05;  // share of the time
constexpr std::uint64_t kUsualWindows = 4;
constexpr std::uint64_t kFirstWindowsOut = 3;
constexpr std::uint64_t kMaxWindowsOut = 48;

constexpr std::size_t kMaxLog = 64;

// Up in long steps, whose gain is seen in the noise, and back in short ones.
constexpr std::uint32_t kMoreThreads = 2;
constexpr std::uint32_t kMorePrefetch = 4;
std::uint32_t fewer_threads(std::uint32_t threads) {
  return threads - std::max<std::uint32_t>(1, threads / 3);
}

/// Whether a window of a trial is the candidate's: b c c b, b c c b, ...
bool is_of_candidate(std::size_t index) { return index % 4 == 1 || index % 4 == 2; }

std::string text_of(const char* format, auto... values) {
  std::array<char, 256> text{};
  std::snprintf(text.data(), text.size(), format, values...);
  return text.data();
}

std::string change_text(const TunerSetting& from, const TunerSetting& to) {
  return from.threads != to.threads ? text_of("threads %u to %u", from.threads, to.threads)
                                    : text_of("prefetch %u to %u", from.prefetch, to.prefetch);
}

/// The windows of a trial that are the base's, or the candidate's, as one.
TunerWindow sum_of(const std::vector<TunerWindow>& windows, bool of_candidate) {
  TunerWindow sum;
  for (std::size_t i = 0; i < windows.size(); ++i)
    if (is_of_candidate(i) == of_candidate) sum.add(windows[i]);
  return sum;
}

/// The threads that were busy, on average.
double busy_threads(const TunerWindow& window, std::uint32_t threads) {
  return threads -
         (window.seconds() > 0 ? std::min<double>(threads, window.idle_seconds / window.seconds()) : 0);
}

}  // namespace

void TunerWindow::add(const TunerWindow& other) {
  batches += other.batches;
  samples += other.samples;
  wait_seconds += other.wait_seconds;
  step_seconds += other.step_seconds;
  idle_seconds += other.idle_seconds;
}

double TunerWindow::log_cost_over(const TunerWindow& other) const {
  const double here = seconds() * static_cast<double>(other.samples);
  const double there = other.seconds() * static_cast<double>(samples);
  return here > 0 && there > 0 ? std::log(here / there) : 0;
}

Tuner::Tuner(const TunerSpec& spec)
    : spec_(spec),
      base_(spec.first),
      setting_(spec.first),
      noise_sum_(kFirstNoiseCount * kFirstNoise * kFirstNoise),
      noise_count_(kFirstNoiseCount),
      windows_needed_(kFirstWindowsOut) {
  begin_climb();
}

TunerSetting Tuner::add(const BatchTimes& times) {
  ++batches_;
  if (!is_settled_) {
    ++climb_batches_;
    climb_seconds_ += times.wait_seconds + times.step_seconds;
  }
  if (skipped_batches_ > 0 || skipped_seconds_ > 0) {
    skipped_batches_ -= std::min<std::uint64_t>(skipped_batches_, 1);
    skipped_seconds_ -= times.wait_seconds + times.step_seconds;
    return setting_;
  }
  window_.add({1, times.samples, times.wait_seconds, times.step_seconds, times.idle_seconds});
  if (!is_complete(window_)) return setting_;
  const TunerWindow window = std::exchange(window_, {});
  if (is_settled_)
    watch(window);
  else
    climb(window);
  return setting_;
}

TunerSetting Tuner::refuse(const std::string& reason) {
  if (setting_ == base_) return setting_;
  write_log(change_text(base_, setting_) + ": not possible: " + reason);
  if (setting_.threads != base_.threads) spec_.max.threads = base_.threads;
  if (setting_.prefetch != base_.prefetch) spec_.max.prefetch = base_.prefetch;
  trial_.reset();
  last_.reset();
  use(base_);
  return setting_;
}

bool Tuner::is_complete(const TunerWindow& window) const {
  const double seconds = window.seconds();
  if (is_settled_) return window.batches >= kWatchBatches && seconds >= kWatchSeconds;
  const double enough = kWindowSeconds * std::max(1.0, noise() / kWindowNoise);
  // Threads that began together end together: fewer batches than they make at a time say little.
  const std::uint64_t lump = batches_made(trial_ ? trial_->candidate : base_);
  return (window.batches >= std::max(kWindowBatches, lump) && seconds >= enough) ||
         (window.batches >= std::max(kLongBatches, lump) && seconds >= kLongSeconds);
}

double Tuner::noise() const { return std::sqrt(noise_sum_ / noise_count_); }

/// How many batches threads make at a time.
std::uint64_t Tuner::batches_made(const TunerSetting& setting) const {
  return (setting.threads + spec_.batch_slices - 1) / spec_.batch_slices;
}

void Tuner::use(const TunerSetting& setting) {
  const auto in_ring = [this](const TunerSetting& of) {
    return 1 + std::max<std::uint64_t>(of.prefetch, batches_made(of));
  };
  skipped_batches_ = std::min(std::max(in_ring(setting), in_ring(setting_)), kMaxSkipped);
  setting_ = setting;
  window_ = {};
  skipped_seconds_ = kSkippedSeconds;
}

void Tuner::begin_climb() {
  is_settled_ = false;
  trial_.reset();
  last_.reset();
  has_more_threads_ = has_fewer_threads_ = has_more_prefetch_ = jumps_ = true;
  seen_ = {};
  seen_windows_ = 0;
  trials_ = 0;
  min_threads_ = spec_.min.threads;
  lost_ = 0;
  climb_batches_ = 0;
  climb_seconds_ = 0;
  use(base_);
}

void Tuner::climb(const TunerWindow& window) {
  if (trial_) {
    continue_trial(window);
    return;
  }
  if (last_) note_noise(*last_, window);
  last_ = window;
  seen_.add(window);
  ++seen_windows_;
  if (seen_windows_ >= kFirstWindows || trials_ > 0) begin_trial();
}

void Tuner::note_noise(const TunerWindow& before, const TunerWindow& after) {
  const double difference = after.log_cost_over(before);
  // The latest windows count most: what else the machine does comes and goes.
  const double share = noise_count_ < kMaxNoiseCount ? 1 : (kMaxNoiseCount - 1) / kMaxNoiseCount;
  noise_sum_ = noise_sum_ * share + difference * difference / 2;
  noise_count_ = noise_count_ * share + 1;
}

bool Tuner::is_over() const {
  return climb_batches_ >= kMaxClimbBatches && climb_seconds_ >= kMaxClimbSeconds;
}

std::optional<Tuner::Knob> Tuner::choose_knob() const {
  const bool fewer = has_fewer_threads_ && base_.threads > min_threads_;
  if (seen_.wait_fraction() > kWaiting) {
    const bool threads = has_more_threads_ && base_.threads < spec_.max.threads;
    // Threads that were idle though training waited were so at other times: batches are used unevenly.
    const double idle = 1 - busy_threads(seen_, base_.threads) / base_.threads;
    const bool prefetch = has_more_prefetch_ && base_.prefetch < spec_.max.prefetch && idle > kIdle;
    if (prefetch && (idle > 0.5 || !threads)) return Knob::more_prefetch;
    if (threads) return Knob::more_threads;
  }
  return fewer ? std::optional(Knob::fewer_threads) : std::nullopt;
}

TunerSetting Tuner::candidate_of(Knob knob) const {
  TunerSetting candidate = base_;
  switch (knob) {
    case Knob::more_threads:
      candidate.threads = std::min(kMoreThreads * base_.threads, spec_.max.threads);
      break;
    case Knob::more_prefetch:
      // As many as threads make at a time are in the ring anyway.
      candidate.prefetch = static_cast<std::uint32_t>(std::min<std::uint64_t>(
          kMorePrefetch * std::max<std::uint64_t>(base_.prefetch, batches_made(base_)), spec_.max.prefetch));
      break;
    case Knob::fewer_threads:
      candidate.threads = fewer_threads(base_.threads);
      if (jumps_ && seen_.wait_fraction() <= kWaiting)
        candidate.threads =
            std::min(candidate.threads,
                     static_cast<std::uint32_t>(std::ceil(1.25 * busy_threads(seen_, base_.threads))));
      candidate.threads = std::max(candidate.threads, min_threads_);
      break;
  }
  return candidate;
}

void Tuner::begin_trial() {
  const std::optional<Knob> knob = choose_knob();
  if (!knob || is_over()) {
    settle();
    return;
  }
  ++trials_;
  trial_ = Trial{*knob, candidate_of(*knob), {last_.value()}};
  trial_->windows.reserve(kMaxWindows);
  use(trial_->candidate);
}

void Tuner::continue_trial(const TunerWindow& window) {
  std::vector<TunerWindow>& windows = trial_->windows;
  const std::size_t index = windows.size();
  windows.push_back(window);
  if (!is_of_candidate(index)) seen_.add(window);
  if (index >= 2 && is_of_candidate(index) == is_of_candidate(index - 1))
    note_noise(windows[index - 1], window);
  const Outcome outcome = judge();
  if (outcome != Outcome::open) {
    end_trial(outcome == Outcome::kept);
    return;
  }
  const bool is_candidate_next = is_of_candidate(windows.size());
  if (is_candidate_next != is_of_candidate(index)) use(is_candidate_next ? trial_->candidate : base_);
}

Tuner::Gain Tuner::gain_of_trial() const {
  const std::vector<TunerWindow>& windows = trial_->windows;
  const std::size_t pairs = windows.size() / 2;
  std::vector<double> gains;
  for (std::size_t i = 0; i < pairs; ++i) {
    const TunerWindow& first = windows[2 * i];
    const TunerWindow& second = windows[2 * i + 1];
    gains.push_back(is_of_candidate(2 * i) ? second.log_cost_over(first) : first.log_cost_over(second));
  }
  Gain gain;
  for (const double each : gains) gain.mean += each / static_cast<double>(pairs);
  double squares = 0;
  for (const double each : gains) squares += (each - gain.mean) * (each - gain.mean);
  const double own = pairs > 1 ? squares / static_cast<double>(pairs - 1) : 0;
  const double usual = 2 * noise() * noise();
  gain.error = std::sqrt(std::max(own, usual) / static_cast<double>(pairs));
  return gain;
}

Tuner::Outcome Tuner::judge() const {
  const std::vector<TunerWindow>& windows = trial_->windows;
  const TunerWindow base = sum_of(windows, false), tried = sum_of(windows, true);
  if (windows.size() == 2 && -tried.log_cost_over(base) < kGiveUp) return Outcome::rejected;
  const bool is_fewer = trial_->knob == Knob::fewer_threads;
  const bool is_last = windows.size() >= kMaxWindows || is_over();
  if (is_fewer && base.wait_fraction() <= kWaiting) return judge_spare(tried, is_last);
  if (windows.size() < kMinWindows || windows.size() % 2 != 0) return Outcome::open;
  return is_fewer ? judge_fewer(gain_of_trial(), is_last) : judge_more(gain_of_trial(), is_last);
}

/// Judges fewer threads where training does not wait: steps vary more than what they wait, so that their
/// times say nothing. Threads that are never idle may be about to fall behind, with what the ring still
/// holds.
Tuner::Outcome Tuner::judge_spare(const TunerWindow& tried, bool is_last) const {
  if (trial_->windows.size() < kMinWindows - 1) return Outcome::open;
  const std::uint32_t threads = trial_->candidate.threads;
  if (tried.wait_fraction() > kWaiting) return Outcome::rejected;
  if (busy_threads(tried, threads) <= (1 - kSpare) * threads) return Outcome::kept;
  return is_last ? Outcome::rejected : Outcome::open;
}

Tuner::Outcome Tuner::judge_more(const Gain& gain, bool is_last) const {
  const bool is_over_cpus = trial_->knob == Knob::more_threads && trial_->candidate.threads > spec_.cpus;
  const double needed = is_over_cpus ? kMinGainOverCpus : kMinGain;
  const double errors = trial_->knob == Knob::more_prefetch ? kErrorsOfPrefetch : kErrorsOfThreads;
  if (gain.mean >= needed && gain.mean >= errors * gain.error) return Outcome::kept;
  return is_last || gain.mean + gain.error < needed ? Outcome::rejected : Outcome::open;
}

Tuner::Outcome Tuner::judge_fewer(const Gain& gain, bool is_last) const {
  const double min_gain = lost_ - kMaxLoss;
  if (gain.mean >= min_gain && gain.error <= kMaxLoss) return Outcome::kept;
  return is_last || gain.mean + gain.error < min_gain ? Outcome::rejected : Outcome::open;
}

void Tuner::close(Knob knob) {
  switch (knob) {
    case Knob::more_threads:
      has_more_threads_ = false;
      break;
    case Knob::more_prefetch:
      has_more_prefetch_ = false;
      break;
    case Knob::fewer_threads:
      has_fewer_threads_ = false;
      break;
  }
}

void Tuner::end_trial(bool is_kept) {
  const Trial trial = *std::exchange(trial_, std::nullopt);
  const TunerWindow base = sum_of(trial.windows, false), tried = sum_of(trial.windows, true);
  const double gain = -tried.log_cost_over(base);
  const bool is_busy = busy_threads(base, base_.threads) >= 0.5 * base_.threads;
  write_log(text_of("waited %.1f %%, threads %s: ", 100 * base.wait_fraction(), is_busy ? "busy" : "idle") +
            change_text(base_, trial.candidate) +
            text_of(": waited %.1f %%, %.2f times the speed: %s", 100 * tried.wait_fraction(), std::exp(gain),
                    is_kept ? "kept" : "taken back"));
  const bool is_jump = trial.candidate.threads < fewer_threads(base_.threads);
  if (is_kept) {
    if (trial.knob == Knob::more_threads) min_threads_ = base_.threads + 1;
    if (trial.knob == Knob::fewer_threads) {
      close(Knob::more_threads);
      if (base.wait_fraction() > kWaiting) lost_ = std::max(0.0, lost_ - gain);
    }
    base_ = trial.candidate;
    seen_ = {};
  } else if (trial.knob == Knob::fewer_threads && is_jump) {
    jumps_ = false;
  } else {
    close(trial.knob);
  }
  const bool goes_on = setting_ == base_;
  if (goes_on && is_kept) seen_ = tried;
  last_ = goes_on ? std::optional(trial.windows.back()) : std::nullopt;
  if (goes_on)
    begin_trial();
  else
    use(base_);
}

void Tuner::settle() {
  is_settled_ = true;
  expected_wait_ = seen_.wait_fraction();
  trial_.reset();
  last_.reset();
  usual_ = {};
  usual_windows_ = windows_out_ = 0;
  write_log(text_of("settled on threads %u, prefetch %u after %s", base_.threads, base_.prefetch,
                    count_text(trials_, "trial").c_str()));
}

bool Tuner::is_out_of_band(const TunerWindow& window) const {
  const double noise = 4 * this->noise();
  const double waited = usual_.wait_fraction();
  return std::abs(window.log_cost_over(usual_)) > std::max(kBand, noise) ||
         std::abs(window.wait_fraction() - waited) > std::max(kWaitBand, noise);
}

void Tuner::watch(const TunerWindow& window) {
  if (usual_windows_ < kUsualWindows) {
    usual_.add(window);
    ++usual_windows_;
    // A ring that was full when it was judged has hidden that threads are too few.
    if (usual_windows_ == kUsualWindows && usual_.wait_fraction() > expected_wait_ + kWaitBand)
      climb_again(text_of("waited %.1f %%, %.1f %% were expected", 100 * usual_.wait_fraction(),
                          100 * expected_wait_));
    return;
  }
  windows_out_ = is_out_of_band(window) ? windows_out_ + 1 : 0;
  if (windows_out_ != windows_needed_) return;
  const auto batch_ms = [](const TunerWindow& of) {
    return 1e3 * of.seconds() / static_cast<double>(of.batches);
  };
  climb_again(text_of("a batch takes %.3g ms and waits %.1f %%, was %.3g ms and %.1f %%", batch_ms(window),
                      100 * window.wait_fraction(), batch_ms(usual_), 100 * usual_.wait_fraction()));
}

void Tuner::climb_again(const std::string& reason) {
  write_log(reason + ": tuning again");
  windows_needed_ = std::min(2 * windows_needed_, kMaxWindowsOut);
  begin_climb();
}

void Tuner::write_log(const std::string& text) {
  if (log_.size() == kMaxLog) log_.erase(log_.begin());
  log_.push_back("batch " + std::to_string(batches_) + ": " + text);
}

}  // namespace chunkhit
