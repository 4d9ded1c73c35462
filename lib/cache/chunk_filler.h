// A thread that fills chunks of shared memory as they arrive.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>

namespace chunkhit {

/// Fills chunks that this process has asked a server for, one after the other, so that other processes do not
/// wait until they are needed here. Any thread may call anything.
class ChunkFiller {
 public:
  /// `fill`: throws nothing.
  explicit ChunkFiller(std::function<void(std::size_t chunk)> fill);
  void add(std::size_t chunk);
  /// Returns the chunks whose filling has not begun, which is given up.
  [[nodiscard]] std::deque<std::size_t> forget();
  /// Ends the thread after the chunk that it fills; returns whether it has ended.
  bool stop();

 private:
  void run(const std::stop_token& stop);

  const std::function<void(std::size_t)> fill_;
  std::mutex mutex_;  // guards the two below
  std::deque<std::size_t> asked_;
  std::condition_variable_any changed_;
  std::atomic<bool> has_ended_{false};
  std::jthread thread_;  // last: uses all above
};

}  // namespace chunkhit
