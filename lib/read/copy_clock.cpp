#include "read/copy_clock.h"

#include <sys/resource.h>

namespace chunkhit {
namespace {

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

struct Usage {
  Usage() {
    rusage used{};
    ::getrusage(RUSAGE_THREAD, &used);
    cpu_seconds = seconds_of(used.ru_utime) + seconds_of(used.ru_stime);
    waits = used.ru_nvcsw;
  }
  double cpu_seconds;
  long waits;
};

}  // namespace

CopyClock::CopyClock() : begin_(std::chrono::steady_clock::now()) {
  const Usage usage;
  cpu_seconds_ = usage.cpu_seconds;
  waits_ = usage.waits;
}

void CopyClock::add_to(BatchCounts& counts) const {
  const Usage now;
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  const double cpu_seconds = now.cpu_seconds - cpu_seconds_;
  const bool waited = now.waits != waits_ && cpu_seconds < seconds;
  const double page_seconds = waited ? seconds - cpu_seconds : 0;
  counts.page_seconds += page_seconds;
  counts.assemble_seconds += seconds - page_seconds;
}

}  // namespace chunkhit
