// Stores of ratings by user: in memory up to a budget, then in a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/memory_budget.h"
#include "base/spill_file.h"
#include "ratings/rating_rows.h"

namespace chunkhit {

/// How ratings are kept.
struct RatingStoreSpec {
  /// Of ratings in memory, what is more goes to a file; and as much of rows in work.
  std::uint64_t memory_bytes = 1ull << 30;
  std::string folder{};  ///< folder of that file, which has no name and vanishes with the process
  bool keeps_times = false;
};

/// Takes ratings in the input's order and gives them back as rows, 1,024 users (a bucket) at a time. A rating
/// takes 5 bytes, or 10 where there are more than 256 values or 2^22 items, and 8 more with times. A bucket
/// takes 16 KiB, less where many share little memory. Users' numbers should have no large gaps.
class RatingStore {
 public:
  explicit RatingStore(RatingStoreSpec spec);
  /// Appends ratings: users and items by number, below 2^32 - 1. No `values`: all are 1. `times` are needed
  /// only where they are kept, and may be absent from all blocks. Throws cannot_write, and bad_data when
  /// only some of the ratings have times that are to be kept. One thread at a time.
  void append(std::span<const std::uint32_t> users, std::span<const std::uint32_t> items,
              std::span<const float> values, std::span<const std::int64_t> times);
  [[nodiscard]] std::uint64_t rating_count() const { return rating_count_; }
  /// The largest number of a user, or of an item, and one more.
  [[nodiscard]] std::uint32_t user_count() const { return user_count_; }
  [[nodiscard]] std::uint32_t item_count() const { return item_count_; }
  [[nodiscard]] bool has_times() const { return has_times_; }
  [[nodiscard]] bool is_spilled() const { return file_ != nullptr; }
  [[nodiscard]] const RatingStoreSpec& spec() const { return spec_; }
  [[nodiscard]] std::size_t bucket_count() const { return buckets_.size(); }
  /// Lowers the memory limit; the excess is spilled when the next ratings are appended.
  void limit_memory(std::uint64_t bytes) { spec_.memory_bytes = bytes; }
  /// Spills all ratings in memory to the file. Throws cannot_write.
  void spill();
  /// Cuts a bucket into users whose rows are made at a time: [n, n + 1) of the result, in no more than
  /// `bytes` unless one user has more.
  [[nodiscard]] std::vector<std::uint32_t> cut_bucket(std::size_t bucket, std::uint64_t bytes) const;
  /// Bytes that making rows takes for a rating.
  [[nodiscard]] std::uint64_t work_bytes_of_rating() const;
  [[nodiscard]] std::uint64_t ratings_in(std::size_t bucket) const;
  /// Whether rows of a form fit into memory beside the records that they are made of.
  [[nodiscard]] bool has_room_for_rows(RowForm form, bool keeps_times) const;
  /// Counts the ratings of each user of a bucket, as an indptr.
  [[nodiscard]] std::vector<std::uint64_t> count_ratings(std::size_t bucket) const;
  /// Makes the rows of the users [first, end) of one bucket. Several threads may. Throws bad_data when a user
  /// has 2^32 ratings.
  [[nodiscard]] RatingRows rows(std::uint32_t first_user, std::uint32_t end_user, RowForm form) const;
  /// The same for a whole bucket; the last one ends with user_count().
  [[nodiscard]] RatingRows bucket(std::size_t index, RowForm form) const;
  /// Frees a bucket's memory; several threads may, each another bucket.
  void drop(std::size_t index);

 private:
  struct Page {
    std::unique_ptr<std::uint8_t[]> bytes;
    std::size_t allocated_bytes = 0;
    std::uint32_t used_bytes = 0;  ///< bytes of whole records, once closed
  };
  /// A bucket's records, one after the other, in the input's order: those in the file, then these.
  struct Bucket {
    std::vector<Page> pages;
    std::uint64_t rating_count = 0;  ///< ratings in memory and in the file, but for the last open page
  };
  /// One spill of all that was in memory, as stored in the file: by bucket.
  struct Spill {
    std::uint64_t offset = 0;
    RecordLayout layout;
    std::vector<std::uint64_t> ends;  ///< end of each bucket's records, counted from `offset`
  };
  /// Where the next record of a bucket goes, in its last page; null: that one is full or written.
  struct Cursor {
    std::uint8_t* at = nullptr;
    std::uint8_t* end = nullptr;
  };

  template <bool kWide, bool kTimes>
  void append_records(std::span<const std::uint32_t> users, std::span<const std::uint32_t> items,
                      std::span<const float> values, std::span<const std::int64_t> times);
  [[nodiscard]] bool fits_narrow(std::span<const float> values, std::size_t count);
  void widen();
  [[nodiscard]] std::uint64_t wide_page_bytes() const;
  [[nodiscard]] RecordLayout layout() const { return {is_wide_, has_times_}; }
  void reach_user(std::uint32_t largest);
  void add_page(std::size_t bucket);
  void put_page(std::size_t bucket, std::size_t bytes);
  void close_page(std::size_t bucket);
  [[nodiscard]] std::size_t next_page_bytes() const;
  [[nodiscard]] std::vector<Bytes> records_in_memory(std::size_t bucket) const;
  void scan(std::size_t bucket, const std::function<void(RecordPiece)>& visit) const;

  RatingStoreSpec spec_;
  bool is_wide_ = false;  ///< layout of the records in memory
  ValueCodes codes_;
  std::vector<std::uint8_t> block_codes_;  ///< codes of the values that are appended
  bool has_times_ = false;
  bool has_values_ = false;
  std::uint64_t rating_count_ = 0;
  std::uint32_t user_count_ = 0;
  std::uint32_t item_count_ = 0;
  std::uint64_t page_bytes_ = 0;   ///< memory of all pages with their bookkeeping
  std::uint64_t table_bytes_ = 0;  ///< memory of `spills_`
  std::vector<Bucket> buckets_;
  std::vector<Cursor> cursors_;
  std::vector<Spill> spills_;
  std::unique_ptr<SpillFile> file_;
};

/// Keeps the rows of all users after the rules, by bucket: in memory, or in a file.
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
  [[nodiscard]] RatingRow row(std::uint32_t user) const {
    return buckets_[user / kBucketUsers].row(user % kBucketUsers);
  }
  /// Has where a user's row begins loaded into the CPU's cache, for a later `prefetch`.
  void prefetch_begin(std::uint32_t user) const {
    __builtin_prefetch(buckets_[user / kBucketUsers].indptr.data() + user % kBucketUsers);
  }
  /// Has the beginning of the items and values of a user's row loaded into the CPU's cache, for a later
  /// `row`.
  void prefetch(std::uint32_t user) const;
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
