// The rows of all users after the rules: in memory, or in a file, a bucket at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/memory_budget.h"
#include "base/spill_file.h"
#include "ratings/rating_store.h"

namespace chunkhit {

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
