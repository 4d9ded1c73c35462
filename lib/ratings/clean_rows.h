// The rows of all users after the rules: in memory, or in a file, a bucket at a time.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "ratings/rating_store.h"

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

/// Keeps buckets of rows.
class CleanRows {
 public:
  /// Keeps them in memory where `spill_folder` is empty; else shows no more of them at a time than fits into
  /// `work_bytes`. Throws cannot_write.
  CleanRows(std::size_t bucket_count, const std::string& spill_folder, std::uint64_t work_bytes = UINT64_MAX);
  /// Takes the rows of consecutive users of a bucket, all of it where rows stay in memory; several threads
  /// may, each another bucket. Throws cannot_write.
  void put(std::size_t bucket, RatingRows rows);
  [[nodiscard]] bool is_spilled() const { return file_ != nullptr; }
  [[nodiscard]] std::size_t bucket_count() const { return bucket_count_; }
  /// Views one user's row; not for a spilled store.
  [[nodiscard]] RatingRow row(std::uint32_t user) const;
  /// Shows all rows to `visit`, a bucket or a part of one at a time, on several threads and in no order.
  /// Throws what `visit` throws.
  void for_each_bucket(const std::function<void(const RatingRows&)>& visit) const;

 private:
  /// Where the arrays of some rows lie in the file, one after the other.
  struct Extent {
    std::uint32_t first_user = 0;
    std::uint64_t offset = 0;
    std::uint64_t row_count = 0;
    std::uint64_t nnz = 0;
    bool has_values = false;
    bool has_times = false;
    bool has_positions = false;
  };
  [[nodiscard]] RatingRows load(const Extent& extent) const;

  std::vector<RatingRows> buckets_;           ///< rows that stay in memory, by bucket
  std::vector<std::vector<Extent>> extents_;  ///< spilled: by bucket
  std::size_t bucket_count_ = 0;
  std::unique_ptr<SpillFile> file_;
  std::unique_ptr<MemoryBudget> work_;  ///< budget of the rows that `for_each_bucket` shows
};

}  // namespace chunkhit
