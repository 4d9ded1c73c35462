#include <ctime>
#include <string>

#include "base/words.h"
#include "decode/image_decoder.h"

namespace chunkhit {

using std::chrono::nanoseconds;
using std::chrono::steady_clock;

namespace {

nanoseconds thread_time() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + nanoseconds(time.tv_nsec);
}

}  // namespace

DecodeMonitor::DecodeMonitor(const DecodeOptions& options)
    : options_(options), begin_(steady_clock::now()), thread_begin_(thread_time()) {}

bool DecodeMonitor::is_out_of_time() const {
  const std::chrono::seconds limit(options_.max_seconds);
  // The first clock is cheap to read; only the second one stands while the process is stopped or waits.
  return options_.max_seconds > 0 && steady_clock::now() - begin_ > limit &&
         thread_time() - thread_begin_ > limit;
}

std::string DecodeMonitor::time_error() const {
  return "takes longer to decode than `max_seconds_per_image` allows: " +
         count_text(options_.max_seconds, "second");
}

void DecodeMonitor::check_time() const {
  if (is_out_of_time()) throw ImageError(RejectKind::too_slow, time_error());
}

void DecodeMonitor::damage(const std::string& what) {
  if (!options_.accept_warnings) throw ImageError(RejectKind::damaged, what);
  if (first_damage_.empty()) first_damage_ = what;
  ++count_;
}

void DecodeMonitor::oddity(const std::string& what) {
  if (first_oddity_.empty()) first_oddity_ = what;
  ++count_;
}

std::string DecodeMonitor::warnings() const {
  const std::string& first = first_damage_.empty() ? first_oddity_ : first_damage_;
  return count_ <= 1 ? first : first + " (and " + count_text(count_ - 1, "more warning") + ")";
}

}  // namespace chunkhit
