// Buffers that a pipeline's steps lend to each other, and the first exception of the steps.
#pragma once

#include <oneapi/tbb/concurrent_queue.h>

#include <atomic>
#include <exception>
#include <memory>

namespace chunkhit {

/// Lends buffers; any thread may take one and give it back. Outlives its users.
template <class Buffer>
class BufferPool {
 public:
  std::shared_ptr<Buffer> get() {
    Buffer* buffer = nullptr;
    if (!free_.try_pop(buffer)) buffer = new Buffer;
    return {buffer, [this](Buffer* returned) { free_.push(returned); }};
  }
  ~BufferPool() {
    for (Buffer* buffer = nullptr; free_.try_pop(buffer);) delete buffer;
  }

 private:
  tbb::concurrent_queue<Buffer*> free_;
};

/// Keeps the first exception and makes every later step do nothing, so that the pipeline runs empty: when an
/// exception reaches oneTBB, the tokens between two steps are never destroyed.
class FirstFailure {
 public:
  [[nodiscard]] explicit operator bool() const { return failed_; }

  /// Runs one step on one token, unless another one has failed.
  template <class Step>
  auto unless_failed(Step step) -> decltype(step()) {
    if (!failed_) {
      try {
        return step();
      } catch (...) {
        if (!failed_.exchange(true)) error_ = std::current_exception();
      }
    }
    return decltype(step())();
  }

  /// Throws what was kept; call when all steps have ended.
  void rethrow() const {
    if (failed_) std::rethrow_exception(error_);
  }

 private:
  std::atomic<bool> failed_{false};
  std::exception_ptr error_;  ///< written once, by the step that sets failed_
};

}  // namespace chunkhit
