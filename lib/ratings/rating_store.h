// Ratings gathered by user: their rows, their records in a file, and a store in memory up to a budget, then
// in a file.
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

namespace chunkhit {

/// How a row lies.
enum class RowForm {
  ascending,            ///< sorted by item; equal ones in the input's order
  with_positions,       ///< the same, with positions
  as_they_came,         ///< input order; ascending where an item occurs twice
  came_with_positions,  ///< the same, with positions
};

/// Views one user's ratings. Vectors that are there are as long as `items`.
struct RatingRow {
  std::uint32_t user = 0;
  std::span<const std::uint32_t> items;
  std::span<const float> values;             ///< empty: every value is 1
  std::span<const std::int64_t> times;       ///< empty: not kept
  std::span<const std::uint32_t> positions;  ///< among the user's ratings in the input; empty: not kept
};

/// Owns the rows of consecutive users.
struct RatingRows {
  template <class T>
  using Numbers = std::vector<T, UnwrittenAllocator<T>>;
  std::uint32_t first_user = 0;
  std::vector<std::uint64_t> indptr{0};  ///< row r has the entries [indptr[r], indptr[r + 1])
  Numbers<std::uint32_t> items;          ///< items of each row in the order of a RowForm
  Numbers<float> values;                 ///< empty: every value is 1
  Numbers<std::int64_t> times;           ///< empty: not kept
  Numbers<std::uint32_t> positions;      ///< among the user's ratings in the input; empty: not kept
  [[nodiscard]] std::size_t row_count() const { return indptr.size() - 1; }
  [[nodiscard]] std::size_t nnz() const { return items.size(); }
  [[nodiscard]] RatingRow row(std::size_t index) const {
    const std::size_t from = indptr[index];
    const std::size_t count = indptr[index + 1] - from;
    const auto part = [&](const auto& all) {
      return all.empty() ? std::span(all) : std::span(all).subspan(from, count);
    };
    return {first_user + static_cast<std::uint32_t>(index), part(items), part(values), part(times),
            part(positions)};
  }
};

/// Sorts keys by their upper 32 bits; keys with equal ones stay in their order. Keeps a buffer, so each
/// thread has its own.
class KeySort {
 public:
  void sort(std::span<std::uint64_t> keys);

 private:
  std::vector<std::uint64_t> other_;
};

// A record: u16 user in the bucket, u32 item, f32 value, then i64 time where times are kept.
inline constexpr std::size_t kRecordItemAt = 2;
inline constexpr std::size_t kRecordValueAt = 6;
inline constexpr std::size_t kRecordTimeAt = 10;

/// Bytes of a record.
[[nodiscard]] constexpr std::size_t record_bytes(bool has_times) {
  return has_times ? kRecordTimeAt + sizeof(std::int64_t) : kRecordTimeAt;
}

/// Memory that a rating takes while rows are made: keys that are sorted, then the row itself.
inline constexpr std::uint64_t kRowWorkBytes = 8 + 8 + 4 + (4 + 4 + 4);
inline constexpr std::uint64_t kTimedRowWorkBytes = kRowWorkBytes + 8 + 8;

/// Fields of the records, and the form wanted of the rows.
struct RecordFields {
  bool times = false;   ///< there are times, in records and rows
  bool values = false;  ///< wanted
  RowForm form = RowForm::ascending;
};

/// Shows a bucket's records to its argument in the input's order, whole records at a time; is called twice.
using RecordScan = std::function<void(const std::function<void(Bytes)>&)>;

/// Counts the ratings of each of the users [first, first + count) of a bucket, as an indptr.
[[nodiscard]] std::vector<std::uint64_t> count_records(const RecordScan& scan, bool has_times,
                                                       std::uint32_t first, std::uint32_t count);

/// Makes rows of the records of the users [first, first + count) of a bucket; `rows.first_user` is the
/// caller's. Takes at most kRowWorkBytes a rating, kTimedRowWorkBytes where there are times. Throws bad_data
/// when a user has 2^32 ratings.
void rows_of_records(const RecordScan& scan, RecordFields fields, std::uint32_t first, std::uint32_t count,
                     RatingRows& rows);

/// How ratings are kept.
struct RatingStoreSpec {
  /// Of ratings in memory, what is more goes to a file; and as much of rows in work.
  std::uint64_t memory_bytes = 1ull << 30;
  std::string folder{};  ///< folder of that file, which has no name and vanishes with the process
  bool keeps_times = false;
};

/// Users whose ratings are kept together, and read at one time.
inline constexpr std::uint32_t kBucketUsers = 1024;

/// Takes ratings in the input's order and gives them back as rows, 1,024 users (a bucket) at a time. Needs
/// 10 bytes a rating, 18 with times, and 16 KiB a bucket, less where many buckets share little memory; users'
/// numbers should have no large gaps.
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
  [[nodiscard]] std::uint64_t ratings_in(std::size_t bucket) const { return buckets_[bucket].rating_count; }
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
    std::uint32_t used_bytes = 0;  ///< bytes of whole records
  };
  /// A bucket's records, one after the other, in the input's order: those in the file, then these.
  struct Bucket {
    std::vector<Page> pages;
    std::uint64_t rating_count = 0;  ///< ratings in memory and in the file
  };
  /// One spill of all that was in memory, as stored in the file: by bucket.
  struct Spill {
    std::uint64_t offset = 0;
    std::vector<std::uint64_t> ends;  ///< end of each bucket's records, counted from `offset`
  };
  /// Where the next record of a bucket goes, in its last page.
  struct Cursor {
    std::uint8_t* at = nullptr;
    std::uint8_t* end = nullptr;
  };

  template <bool kTimes>
  void append_records(std::span<const std::uint32_t> users, std::span<const std::uint32_t> items,
                      std::span<const float> values, std::span<const std::int64_t> times);
  void reach_user(std::uint32_t largest);
  void add_page(std::size_t bucket);
  [[nodiscard]] std::size_t next_page_bytes() const;
  [[nodiscard]] std::vector<Bytes> records_in_memory(std::size_t bucket) const;
  void scan(std::size_t bucket, const std::function<void(Bytes)>& visit) const;

  RatingStoreSpec spec_;
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
