// Clocks of a loader's statistics: the caller's waits and steps; copying, and the time in which it read pages
// from disk.
#pragma once

#include <chrono>
#include <optional>

#include "read/batch_ring.h"

namespace chunkhit {

/// Divides the time since the first request for a batch: the caller waits inside the loader, or is busy
/// outside with a batch. Counts nothing before `start`, and no pause behind an epoch's end.
class CallerClock {
 public:
  void start() { is_started_ = true; }
  /// The caller comes in.
  void enter() {
    if (!is_started_) return;
    entered_ = Clock::now();
    if (busy_since_) step_seconds_ += seconds_between(*busy_since_, entered_);
    busy_since_.reset();
  }
  /// The caller goes; `is_busy`: with a batch.
  void leave(bool is_busy) {
    if (!is_started_) return;
    const Clock::time_point now = Clock::now();
    wait_seconds_ += seconds_between(entered_, now);
    if (is_busy) busy_since_ = now;
  }
  [[nodiscard]] double wait_seconds() const { return wait_seconds_; }
  [[nodiscard]] double step_seconds() const { return step_seconds_; }

 private:
  using Clock = std::chrono::steady_clock;
  static double seconds_between(Clock::time_point begin, Clock::time_point end) {
    return std::chrono::duration<double>(end - begin).count();
  }

  bool is_started_ = false;
  Clock::time_point entered_;
  std::optional<Clock::time_point> busy_since_;
  double wait_seconds_ = 0;
  double step_seconds_ = 0;
};

/// Measures a stretch of copying. It takes no lock and calls nothing that waits; so where the thread gave up
/// its CPU by itself, it was for bytes of a file that the system had to read.
class CopyClock {
 public:
  CopyClock();
  /// Adds what has passed: to the pages' time what was spent off the CPU, if there was something to wait for.
  void add_to(BatchCounts& counts) const;

 private:
  std::chrono::steady_clock::time_point begin_;
  double cpu_seconds_ = 0;
  long waits_ = 0;
};

}  // namespace chunkhit
