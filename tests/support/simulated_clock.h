// The clocks and sleeps of a thread, as a test sets them.
#pragma once

#include <chrono>
#include <cstdint>

namespace chunkhit {

/// Lets time pass at once for the thread that makes it, as long as it lives: sleeps do not wait.
class SimulatedClock {
 public:
  SimulatedClock();
  SimulatedClock(const SimulatedClock&) = delete;
  SimulatedClock& operator=(const SimulatedClock&) = delete;
  ~SimulatedClock();
  /// Adds time in which the thread computed, before the steady clock is read for the nth time from now.
  void compute(std::chrono::nanoseconds time, std::uint64_t nth_reading = 1);
  /// Adds time in which the thread slept.
  void sleep(std::chrono::nanoseconds time) { slept_ += time; }
  [[nodiscard]] std::chrono::nanoseconds slept() const { return slept_; }

  /// Returns what to add to a clock that is read; null outside of a simulation.
  [[nodiscard]] static SimulatedClock* current();
  [[nodiscard]] std::chrono::nanoseconds read(bool is_steady);

 private:
  std::chrono::nanoseconds slept_{};
  std::chrono::nanoseconds computed_{};
  std::chrono::nanoseconds next_{};
  std::uint64_t readings_left_ = 0;
};

}  // namespace chunkhit
