// Ratings of a bucket of users as bytes, and as rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/bytes.h"
#include "pack/rating_rows.h"

namespace chunkhit {

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

/// What records have, and what is wanted of them.
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

}  // namespace chunkhit
