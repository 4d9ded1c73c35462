// Shows how far a packing run is: a bar on a terminal, lines elsewhere, or JSON lines.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "pack/pack_images.h"

namespace chunkhit {

enum class ProgressStyle { bar, lines, json, none };

/// Chooses by --progress: auto, json or none.
[[nodiscard]] ProgressStyle progress_style(const std::string& choice);

/// Writes to stderr: a bar ten times a second, a line after a second and then each 30, JSON once a second;
/// each phase is told when it begins (on lines: the listing).
class ProgressDisplay {
 public:
  explicit ProgressDisplay(ProgressStyle style) : style_(style) {}
  void show(const PackProgress& progress);
  /// Clears the bar.
  void end();

 private:
  using Clock = std::chrono::steady_clock;
  [[nodiscard]] bool is_due(const PackProgress& progress);
  [[nodiscard]] double rate(const PackProgress& progress) const;
  void show_bar(const PackProgress& progress) const;
  void show_line(const PackProgress& progress) const;
  void show_json(const PackProgress& progress) const;

  ProgressStyle style_;
  Clock::time_point begin_ = Clock::now();
  Clock::time_point packing_since_{};
  Clock::time_point next_{};
  std::optional<PackProgress::Phase> phase_shown_;
  bool bar_shown_ = false;
};

}  // namespace chunkhit
