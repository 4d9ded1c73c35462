#include "decode/decode_monitor.h"

#include "base/words.h"

namespace chunkhit {

using std::chrono::steady_clock;

DecodeMonitor::DecodeMonitor(const DecodeOptions& options)
    : options_(options), end_(steady_clock::now() + std::chrono::seconds(options.max_seconds)) {}

bool DecodeMonitor::is_out_of_time() const { return options_.max_seconds > 0 && steady_clock::now() > end_; }

std::string DecodeMonitor::time_error() const {
  return "takes longer to decode than --max-seconds-per-image allows: " +
         count_text(options_.max_seconds, "second");
}

std::string DecodeMonitor::damage(const std::string& what) {
  if (!options_.accept_warnings) return what;
  if (first_damage_.empty()) first_damage_ = what;
  ++count_;
  return {};
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
