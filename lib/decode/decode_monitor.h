// What every decoder asks while it decodes one image: may it continue, and is an oddity an error?
#pragma once

#include <chrono>
#include <string>

#include "decode/image_decoder.h"

namespace chunkhit {

/// Watches one decoding; made when it begins, by the thread that decodes.
class DecodeMonitor {
 public:
  explicit DecodeMonitor(const DecodeOptions& options);
  [[nodiscard]] const DecodeOptions& options() const { return options_; }

  /// Whether this thread has worked for `max_seconds`. Time in which the process is stopped, or waits for a
  /// CPU, does not count: it says nothing of the image.
  [[nodiscard]] bool is_out_of_time() const;
  /// Throws ImageError where it has.
  void check_time() const;
  /// The reason where it has.
  [[nodiscard]] std::string time_error() const;

  /// Keeps damage that leaves pixels to take as a warning; throws it as ImageError where warnings are not
  /// accepted.
  void damage(const std::string& what);
  /// Keeps a harmless oddity as a warning.
  void oddity(const std::string& what);
  /// The first warning, damage before oddities, and how many more there were; empty where there was none.
  [[nodiscard]] std::string warnings() const;

 private:
  DecodeOptions options_;
  std::chrono::steady_clock::time_point begin_;
  std::chrono::nanoseconds thread_begin_;
  std::string first_damage_;
  std::string first_oddity_;
  unsigned count_ = 0;
};

}  // namespace chunkhit
