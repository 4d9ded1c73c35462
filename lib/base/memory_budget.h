// Shares of a memory budget that threads wait for.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>

namespace chunkhit {

/// Hands out bytes of a budget; a thread that wants more than is left waits. It holds no share while it
/// waits, so there is no circle of waiting threads.
class MemoryBudget {
 public:
  explicit MemoryBudget(std::uint64_t bytes) : total_(bytes), left_(bytes) {}
  [[nodiscard]] std::uint64_t total() const { return total_; }

  /// Holds bytes until it is destroyed.
  class Share {
   public:
    Share() = default;
    /// Waits until so many bytes are left; they must not be more than the total.
    Share(MemoryBudget& budget, std::uint64_t bytes) : budget_(&budget), bytes_(bytes) { budget.take(bytes); }
    Share(Share&& other) noexcept : budget_(other.budget_), bytes_(other.bytes_) { other.budget_ = nullptr; }
    Share& operator=(Share&& other) noexcept {
      std::swap(budget_, other.budget_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    /// Takes bytes where that many are left, else none; never waits.
    [[nodiscard]] static Share of_what_is_left(MemoryBudget& budget, std::uint64_t bytes) {
      Share share;
      if (budget.try_take(bytes)) share.budget_ = &budget, share.bytes_ = bytes;
      return share;
    }
    /// Takes more where that much is left; false, without waiting, where it is not.
    [[nodiscard]] bool try_grow(std::uint64_t bytes) {
      if (!budget_->try_take(bytes - bytes_)) return false;
      bytes_ = bytes;
      return true;
    }
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
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
  [[nodiscard]] bool try_take(std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    if (left_ < bytes) return false;
    left_ -= bytes;
    return true;
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
