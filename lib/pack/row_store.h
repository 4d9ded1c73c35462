// The rows of all users after the rules: in memory, or in a file, a bucket at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pack/rating_rows.h"
#include "pack/spill_file.h"

namespace chunkhit {

/// Keeps buckets of rows.
class RowStore {
 public:
  /// Keeps them in memory where `spill_folder` is empty; throws cannot_write.
  RowStore(std::size_t bucket_count, const std::string& spill_folder);
  /// Takes a bucket; several threads may, each another bucket. Throws cannot_write.
  void put(std::size_t bucket, RatingRows rows);
  [[nodiscard]] bool is_spilled() const { return file_ != nullptr; }
  [[nodiscard]] std::size_t bucket_count() const { return buckets_.size(); }
  /// Views one user's row; not for a spilled store.
  [[nodiscard]] RatingRow row(std::uint32_t user) const;
  /// Shows every bucket to `visit`, on several threads and in no order. Throws what `visit` throws.
  void for_each_bucket(const std::function<void(const RatingRows&)>& visit) const;

 private:
  /// Where a bucket's arrays lie in the file, one after the other.
  struct Place {
    std::uint64_t offset = 0;
    std::uint64_t row_count = 0;
    std::uint64_t nnz = 0;
    bool has_values = false;
    bool has_times = false;
    bool has_places = false;
  };
  [[nodiscard]] RatingRows load(std::size_t bucket) const;

  std::vector<RatingRows> buckets_;  ///< spilled: only their first users
  std::vector<Place> places_;
  std::unique_ptr<SpillFile> file_;
};

}  // namespace chunkhit
