// Shares of a memory budget that threads wait for.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>

namespace chunkhit {

/// Hands out bytes of a budget; a thread that wants more than is left waits. It holds no share while it
/// waits, so there is no circle of waiting threads. Shares that are released in order have ranks, and may
/// wait for more. The first rank never waits, even where nothing is left, so that no rank waits for a later
/// one.
class MemoryBudget {
 public:
  static constexpr std::uint64_t kNoRank = UINT64_MAX;
  explicit MemoryBudget(std::uint64_t bytes) : total_(bytes) {}
  [[nodiscard]] std::uint64_t total() const { return total_; }
  /// Makes the next rank the first one; it is 0 at the beginning.
  void advance() {
    const std::lock_guard lock(mutex_);
    ++first_rank_;
    returned_.notify_all();
  }

  /// Holds bytes until it is destroyed.
  class Share {
   public:
    Share() = default;
    /// Waits until so many bytes are left; without a rank they must not be more than the total.
    Share(MemoryBudget& budget, std::uint64_t bytes, std::uint64_t rank = kNoRank)
        : budget_(&budget), rank_(rank) {
      if (bytes > 0) grow(bytes);
    }
    Share(Share&& other) noexcept { *this = std::move(other); }
    Share& operator=(Share&& other) noexcept {
      std::swap(budget_, other.budget_);
      std::swap(bytes_, other.bytes_);
      std::swap(rank_, other.rank_);
      return *this;
    }
    /// Takes more where that much is left; false, without waiting, where it is not.
    [[nodiscard]] bool try_grow(std::uint64_t bytes) {
      const std::lock_guard lock(budget_->mutex_);
      if (!may_grow(bytes)) return false;
      take(bytes);
      return true;
    }
    /// Takes more once that much is left.
    void grow(std::uint64_t bytes) {
      std::unique_lock lock(budget_->mutex_);
      budget_->returned_.wait(lock, [&] { return may_grow(bytes); });
      take(bytes);
    }
    /// Holds so many bytes from now on, whatever is left.
    void resize(std::uint64_t bytes) {
      const std::lock_guard lock(budget_->mutex_);
      budget_->held_ += bytes - bytes_;
      bytes_ = bytes;
      budget_->returned_.notify_all();
    }
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
    ~Share() {
      if (bytes_ > 0) resize(0);
    }

   private:
    [[nodiscard]] bool may_grow(std::uint64_t bytes) const {
      const std::uint64_t left = budget_->total_ - std::min(budget_->held_, budget_->total_);
      return bytes <= bytes_ || bytes - bytes_ <= left || rank_ == budget_->first_rank_;
    }
    void take(std::uint64_t bytes) {
      budget_->held_ += std::max(bytes, bytes_) - bytes_;
      bytes_ = std::max(bytes, bytes_);
    }
    MemoryBudget* budget_ = nullptr;
    std::uint64_t bytes_ = 0;
    std::uint64_t rank_ = kNoRank;
  };

 private:
  std::mutex mutex_;
  std::condition_variable returned_;
  std::uint64_t total_;
  std::uint64_t held_ = 0;
  std::uint64_t first_rank_ = 0;
};

}  // namespace chunkhit
