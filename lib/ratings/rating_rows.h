// Ratings gathered by user: their rows, and the records that rows are made of.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/bytes.h"

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

/// Users whose ratings are kept together, and read at one time: a bucket.
inline constexpr std::uint32_t kBucketUsers = 1024;

/// Layout of the records of ratings.
struct RecordLayout {
  bool is_wide = false;  ///< any item and any value; else items below 2^22 and at most 256 values
  bool has_times = false;
  /// Bytes of a record.
  [[nodiscard]] constexpr std::size_t bytes() const {
    return (is_wide ? 10 : 5) + (has_times ? sizeof(std::int64_t) : 0);
  }
};

/// Different values of ratings, at most 256, in the order of their codes. 0 and -0 differ.
class ValueCodes {
 public:
  /// Appends the code of each value, known or new; false where there are too many values.
  [[nodiscard]] bool encode(std::span<const float> values, std::vector<std::uint8_t>& codes);
  [[nodiscard]] float value(std::uint8_t code) const { return values_[code]; }

 private:
  static constexpr std::size_t kSlots = 1024;
  std::array<float, 256> values_{};
  std::uint64_t count_ = 0;
  std::array<std::uint64_t, kSlots> slots_{};  ///< bits of a value above its code + 1; 0: free
};

/// Rating of a record.
struct RatingRecord {
  std::uint32_t user = 0;  ///< its number in the bucket
  std::uint32_t item = 0;
  float value = 0;        ///< only wide records have it
  std::uint8_t code = 0;  ///< only narrow records have it, in place of a value
  std::int64_t time = 0;  ///< only where times are kept
};

// A narrow record: u32 of the user above 22 bits of the item, then u8 code. A wide one: u16 user, u32 item,
// f32 value. Then i64 time where times are kept.
inline constexpr int kNarrowItemBits = 22;
static_assert(kBucketUsers <= 1u << (32 - kNarrowItemBits), "a narrow record has 10 bits for a user");

/// Writes a record of a layout.
template <bool kWide, bool kTimes>
void write_record(const RatingRecord& rating, std::uint8_t* to) {
  if constexpr (kWide) {
    store_little(to, static_cast<std::uint16_t>(rating.user));
    store_little(to + 2, rating.item);
    store_little(to + 6, rating.value);
  } else {
    store_little(to, rating.user << kNarrowItemBits | rating.item);
    to[4] = rating.code;
  }
  if constexpr (kTimes) store_little(to + RecordLayout{kWide, false}.bytes(), rating.time);
}

/// Reads a record of a layout.
template <bool kWide, bool kTimes>
RatingRecord read_record(const std::uint8_t* from) {
  RatingRecord rating;
  if constexpr (kWide) {
    rating.user = load_little<std::uint16_t>(from);
    rating.item = load_little<std::uint32_t>(from + 2);
    rating.value = load_little<float>(from + 6);
  } else {
    const auto user_and_item = load_little<std::uint32_t>(from);
    rating.user = user_and_item >> kNarrowItemBits;
    rating.item = user_and_item & ((1u << kNarrowItemBits) - 1);
    rating.code = from[4];
  }
  if constexpr (kTimes) rating.time = load_little<std::int64_t>(from + RecordLayout{kWide, false}.bytes());
  return rating;
}

/// Views whole records of a bucket.
struct RecordPiece {
  Bytes bytes;
  RecordLayout layout;
  /// Calls `take` with each record.
  template <class Take>
  void for_each(const Take& take) const {
    const auto all = [&]<bool kWide, bool kTimes>() {
      constexpr std::size_t kBytes = RecordLayout{kWide, kTimes}.bytes();
      for (std::size_t at = 0; at < bytes.size(); at += kBytes)
        take(read_record<kWide, kTimes>(bytes.data() + at));
    };
    if (layout.is_wide)
      layout.has_times ? all.template operator()<true, true>() : all.template operator()<true, false>();
    else
      layout.has_times ? all.template operator()<false, true>() : all.template operator()<false, false>();
  }
};

/// Memory that a rating takes while rows are made: keys that are sorted, then the row itself.
inline constexpr std::uint64_t kRowWorkBytes = 8 + 8 + 4 + (4 + 4 + 4);
inline constexpr std::uint64_t kTimedRowWorkBytes = kRowWorkBytes + 8 + 8;

/// What is wanted of rows, and what reads values.
struct RowFields {
  bool times = false;   ///< there are times, in records and rows
  bool values = false;  ///< wanted
  RowForm form = RowForm::ascending;
  const ValueCodes* codes = nullptr;  ///< of narrow records
};

/// Shows a bucket's records to its argument in the input's order; is called twice.
using RecordScan = std::function<void(const std::function<void(RecordPiece)>&)>;

/// Counts the ratings of each of the users [first, first + count) of a bucket, as an indptr.
[[nodiscard]] std::vector<std::uint64_t> count_records(const RecordScan& scan, std::uint32_t first,
                                                       std::uint32_t count);

/// Makes rows of the records of the users [first, first + count) of a bucket; `rows.first_user` is the
/// caller's. Takes at most kRowWorkBytes a rating, kTimedRowWorkBytes where there are times. Throws bad_data
/// when a user has 2^32 ratings.
void rows_of_records(const RecordScan& scan, RowFields fields, std::uint32_t first, std::uint32_t count,
                     RatingRows& rows);

}  // namespace chunkhit
