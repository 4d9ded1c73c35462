// Tells how long a stretch of work took, and how much of that the system read pages.
#pragma once

#include <chrono>

#include "read/batch_assembler.h"

namespace chunkhit {

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
