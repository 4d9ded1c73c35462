// Shows how far a packing run is: a bar on a terminal, lines elsewhere, or JSON lines.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "cli.h"

namespace chunkhit {

enum class ProgressStyle { bar, lines, json, none };

/// Chooses by --progress: auto, json or none.
[[nodiscard]] ProgressStyle progress_style(const std::string& choice);

/// How far a run is.
struct ShownProgress {
  std::string_view phase;   ///< for JSON: "packing"
  std::string_view words;   ///< for people, of a phase without counts: "listing the input …"; and
  bool is_first = false;    ///< printed where there is no terminal, too
  std::string_view things;  ///< what is counted: "rows"; empty: nothing yet
  std::string_view rate;    ///< and its rate: "img/s"
  std::string subject;      ///< pack or input in work
  std::uint64_t done = 0;
  std::uint64_t total = 0;    ///< 0: not known
  std::uint64_t skipped = 0;  ///< of those done, by an earlier run
  std::uint64_t problems = 0;
  std::string_view problem_name;  ///< "rejected"
};

/// Writes to stderr: a bar ten times a second, a line after a second and then each 30, JSON once a second;
/// each phase is shown when it begins (on lines: the first).
class ProgressDisplay {
 public:
  explicit ProgressDisplay(ProgressStyle style) : style_(style) {}
  void show(const ShownProgress& progress);
  /// Clears the bar.
  void end();

 private:
  using Clock = std::chrono::steady_clock;
  [[nodiscard]] bool is_due(const ShownProgress& progress);
  [[nodiscard]] double rate(const ShownProgress& progress) const;
  /// The time that is left, "0:42".
  [[nodiscard]] std::string left_text(const ShownProgress& progress) const;
  void show_bar(const ShownProgress& progress) const;
  void show_line(const ShownProgress& progress) const;
  void show_json(const ShownProgress& progress) const;

  ProgressStyle style_;
  Clock::time_point begin_ = Clock::now();
  Clock::time_point counting_since_{};
  std::uint64_t done_before_ = 0;  ///< packed now, when counting began
  Clock::time_point next_{};
  std::string phase_shown_;
  bool bar_shown_ = false;
};

/// Prints the last line of a run that was stopped, which had finished so many parts.
void print_interrupted(std::uint64_t parts);

/// Calls `run(options)`, which shows by `shown(progress)` how far it is and stops at the first signal.
template <class Options, class Shown, class Run>
auto with_progress(ProgressStyle style, Options options, const Shown& shown, const Run& run) {
  ProgressDisplay display(style);
  options.on_progress = [&](const auto& progress) { display.show(shown(progress)); };
  handle_signals();
  options.stop = &stop_requested;
  try {
    auto report = run(options);
    display.end();
    return report;
  } catch (...) {
    display.end();
    throw;
  }
}

}  // namespace chunkhit
