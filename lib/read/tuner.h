// Chooses threads and batches ahead while batches are used: tries one change at a time against what it has.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace chunkhit {

/// What is chosen.
struct TunerSetting {
  std::uint32_t threads = 1;
  std::uint32_t prefetch = 4;
  bool operator==(const TunerSetting&) const = default;
};

/// What may be chosen. A number that is not to change is the same in all three.
struct TunerSpec {
  TunerSetting first;
  TunerSetting min;
  TunerSetting max;
  std::uint32_t cpus = 1;          ///< more threads must gain more
  std::uint64_t batch_slices = 1;  ///< parts of a batch, each of which a thread makes
};

/// One batch: how long the caller waited for it and used it, and how long threads were idle meanwhile, in
/// sum.
struct BatchTimes {
  double wait_seconds = 0;
  double step_seconds = 0;
  double idle_seconds = 0;
  std::uint64_t samples = 0;
};

/// Some batches in a row under one setting.
struct TunerWindow {
  std::uint64_t batches = 0;
  std::uint64_t samples = 0;
  double wait_seconds = 0;
  double step_seconds = 0;
  double idle_seconds = 0;
  void add(const TunerWindow& other);
  [[nodiscard]] double seconds() const { return wait_seconds + step_seconds; }
  [[nodiscard]] double wait_fraction() const { return seconds() > 0 ? wait_seconds / seconds() : 0; }
  /// How many times as long a sample takes here, as a logarithm.
  [[nodiscard]] double log_cost_over(const TunerWindow& other) const;
};

/// Climbs by trials, which compare windows of a candidate with windows of the setting in use, in turns, so
/// that drift cancels out. Where training waits, more threads or batches ahead are tried, then fewer threads;
/// where it does not, fewer threads are, because training needs the CPUs too. A candidate that takes more is
/// kept if it is faster by more than the noise; one that takes less, if it is as fast within the noise. Once
/// nothing is left to try, or after 200 batches and 20 s, it is settled and only watches; it climbs again
/// when a batch's time or the wait leave their band for several windows, for twice as many each time.
///
/// Has no threads and no clock: the same calls give the same choices.
class Tuner {
 public:
  explicit Tuner(const TunerSpec& spec);
  /// Adds a batch; returns what is to be used for the next ones.
  [[nodiscard]] TunerSetting add(const BatchTimes& times);
  /// The setting that `add` returned last cannot be had; returns the one before, beyond which it tries no
  /// more.
  [[nodiscard]] TunerSetting refuse(const std::string& reason);
  [[nodiscard]] bool is_settled() const { return is_settled_; }
  /// What was tried and why, up to the last 64.
  [[nodiscard]] const std::vector<std::string>& log() const { return log_; }

 private:
  enum class Knob { more_threads, fewer_threads, more_prefetch };
  enum class Outcome { open, kept, rejected };
  struct Trial {
    Knob knob;
    TunerSetting candidate;
    std::vector<TunerWindow> windows;  // of the base b and the candidate c: b c c b, b c c b, ...
  };
  /// The mean of a trial's pairs of windows, as the logarithm of how many times as fast the candidate is.
  struct Gain {
    double mean = 0;
    double error = 0;  // its standard error
  };

  [[nodiscard]] bool is_complete(const TunerWindow& window) const;
  [[nodiscard]] std::uint64_t batches_made(const TunerSetting& setting) const;
  void use(const TunerSetting& setting);
  void begin_climb();
  void climb(const TunerWindow& window);
  void begin_trial();
  [[nodiscard]] bool is_over() const;
  [[nodiscard]] std::optional<Knob> choose_knob() const;
  [[nodiscard]] TunerSetting candidate_of(Knob knob) const;
  void continue_trial(const TunerWindow& window);
  [[nodiscard]] Outcome judge() const;
  [[nodiscard]] Outcome judge_spare(const TunerWindow& tried, bool is_last) const;
  [[nodiscard]] Outcome judge_more(const Gain& gain, bool is_last) const;
  [[nodiscard]] Outcome judge_fewer(const Gain& gain, bool is_last) const;
  [[nodiscard]] Gain gain_of_trial() const;
  void end_trial(bool is_kept);
  void close(Knob knob);
  void settle();
  void watch(const TunerWindow& window);
  void climb_again(const std::string& reason);
  [[nodiscard]] bool is_out_of_band(const TunerWindow& window) const;
  [[nodiscard]] double noise() const;
  void note_noise(const TunerWindow& before, const TunerWindow& after);
  void write_log(const std::string& text);

  TunerSpec spec_;
  TunerSetting base_;     // the best known
  TunerSetting setting_;  // in use: the base, or the candidate of a trial
  std::uint64_t batches_ = 0;
  std::uint64_t skipped_batches_ = 0;  // still to be left out after a change
  double skipped_seconds_ = 0;
  TunerWindow window_;

  // A climb.
  std::optional<Trial> trial_;
  std::optional<TunerWindow> last_;  // window of the base, where nothing came in between
  bool has_more_threads_ = true;     // to be tried
  bool has_fewer_threads_ = true;
  bool has_more_prefetch_ = true;
  bool jumps_ = true;  // to as few threads as were busy
  TunerWindow seen_;   // of the base
  std::uint64_t seen_windows_ = 0;
  std::uint64_t trials_ = 0;
  std::uint32_t min_threads_ = 1;  // more than those that more were better than
  double lost_ = 0;                // by changes that take less
  std::uint64_t climb_batches_ = 0;
  double climb_seconds_ = 0;

  // Differences of windows in a row.
  double noise_sum_;
  double noise_count_;

  // Once settled.
  bool is_settled_ = false;
  double expected_wait_ = 0;  // share of the time, as the climb saw it
  TunerWindow usual_;         // the first windows, all together
  std::uint64_t usual_windows_ = 0;
  std::uint64_t windows_out_ = 0;  // of the band, in a row
  std::uint64_t windows_needed_;   // for another climb
  std::vector<std::string> log_;
};

}  // namespace chunkhit
