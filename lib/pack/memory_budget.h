// Bounds what decoding may hold at one time.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>

namespace chunkhit {

/// Hands out bytes of a budget; who wants more than is left waits. A thread holds one share at a time, so
/// nobody waits in a circle.
class MemoryBudget {
 public:
  explicit MemoryBudget(std::uint64_t bytes) : total_(bytes), left_(bytes) {}
  [[nodiscard]] std::uint64_t total() const { return total_; }

  /// Holds bytes until it is destroyed.
  class Share {
   public:
    Share() = default;
    Share(MemoryBudget& budget, std::uint64_t bytes) : budget_(&budget), bytes_(bytes) { budget.take(bytes); }
    Share(Share&& other) noexcept : budget_(other.budget_), bytes_(other.bytes_) { other.budget_ = nullptr; }
    Share& operator=(Share&& other) noexcept {
      std::swap(budget_, other.budget_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Share() {
      if (budget_ != nullptr) budget_->give(bytes_);
    }

   private:
    MemoryBudget* budget_ = nullptr;
    std::uint64_t bytes_ = 0;
  };

 private:
  void take(std::uint64_t bytes) {
    std::unique_lock lock(mutex_);
    returned_.wait(lock, [&] { return left_ >= bytes; });
    left_ -= bytes;
  }
  void give(std::uint64_t bytes) {
    {
      const std::lock_guard lock(mutex_);
      left_ += bytes;
    }
    returned_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable returned_;
  std::uint64_t total_;
  std::uint64_t left_;
};

}  // namespace chunkhit
