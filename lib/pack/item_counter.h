// Counts ratings of items on several threads.
#pragma once

#include <oneapi/tbb/enumerable_thread_specific.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace chunkhit {

/// Counts for each item; needs 4 bytes an item and thread. An item has less than 2^32 ratings, because each
/// user has one at most.
class ItemCounter {
 public:
  explicit ItemCounter(std::size_t item_count)
      : counts_([item_count] { return std::vector<std::uint32_t>(item_count); }), item_count_(item_count) {}
  /// The calling thread's counts.
  [[nodiscard]] std::vector<std::uint32_t>& local() { return counts_.local(); }
  /// What all threads have counted; call when they have ended.
  [[nodiscard]] std::vector<std::uint32_t> sum() const {
    std::vector<std::uint32_t> sum(item_count_);
    for (const std::vector<std::uint32_t>& counts : counts_)
      for (std::size_t item = 0; item < item_count_; ++item) sum[item] += counts[item];
    return sum;
  }

 private:
  tbb::enumerable_thread_specific<std::vector<std::uint32_t>> counts_;
  std::size_t item_count_;
};

}  // namespace chunkhit
