// Looks at many small files at once: on a network file system each open, stat and rename waits for the
// server.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace chunkhit {

/// Calls `visit(index)` for each index below `count`, in up to 16 threads, because they wait more than they
/// compute; throws the first exception when all have ended.
template <class Visit>
void for_each_file(std::size_t count, const Visit& visit) {
  constexpr std::size_t kThreads = 16;
  constexpr std::size_t kFilesPerThread = 32;
  std::atomic<std::size_t> next{0};
  std::exception_ptr error;
  std::mutex mutex;
  const auto work = [&] {
    try {
      for (std::size_t index = next++; index < count; index = next++) visit(index);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
      next = count;
    }
  };
  {
    std::vector<std::jthread> threads;
    const std::size_t wanted = std::min(kThreads, count / kFilesPerThread);
    for (std::size_t thread = 1; thread < wanted; ++thread) threads.emplace_back(work);
    work();
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace chunkhit
