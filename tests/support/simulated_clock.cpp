#include "support/simulated_clock.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>
#include <utility>

namespace chunkhit {
namespace {

thread_local SimulatedClock* simulated = nullptr;

constexpr long kSecond = 1'000'000'000;

}  // namespace

SimulatedClock::SimulatedClock() { simulated = this; }
SimulatedClock::~SimulatedClock() { simulated = nullptr; }
SimulatedClock* SimulatedClock::current() { return simulated; }

void SimulatedClock::compute(std::chrono::nanoseconds time, std::uint64_t nth_reading) {
  next_ = time;
  readings_left_ = nth_reading;
}

std::chrono::nanoseconds SimulatedClock::read(bool is_steady) {
  if (is_steady && readings_left_ > 0 && --readings_left_ == 0) computed_ += next_;
  return is_steady ? slept_ + computed_ : computed_;
}

}  // namespace chunkhit

// Called instead of the C library's, from its other users, too: libstdc++ reads clocks for std::chrono.
extern "C" [[gnu::visibility("default")]] int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const auto result = static_cast<int>(::syscall(SYS_clock_gettime, clock, time));
  chunkhit::SimulatedClock* const simulated = chunkhit::SimulatedClock::current();
  const bool is_steady = clock == CLOCK_MONOTONIC;
  if (result != 0 || simulated == nullptr || !(is_steady || clock == CLOCK_THREAD_CPUTIME_ID)) return result;
  const long nanoseconds = time->tv_nsec + simulated->read(is_steady).count();
  time->tv_sec += nanoseconds / chunkhit::kSecond;
  time->tv_nsec = nanoseconds % chunkhit::kSecond;
  return 0;
}

extern "C" [[gnu::visibility("default")]] int nanosleep(const timespec* time, timespec* left) {
  chunkhit::SimulatedClock* const simulated = chunkhit::SimulatedClock::current();
  if (simulated == nullptr) return static_cast<int>(::syscall(SYS_nanosleep, time, left));
  simulated->sleep(std::chrono::seconds(time->tv_sec) + std::chrono::nanoseconds(time->tv_nsec));
  return 0;
}
