// Ratings of a bucket of users as bytes, and as rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

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

/// What records have, and what is wanted of them.
struct RecordFields {
  bool times = false;   ///< there are times, in records and rows
  bool values = false;  ///< wanted
  RowForm form = RowForm::ascending;
};

/// Makes rows of the records of the users [first, first + count) of a bucket, out of all its records in the
/// input's order; `rows.first_user` is the caller's. Throws bad_data when a user has 2^32 ratings.
void rows_of_records(std::span<const Bytes> pieces, RecordFields fields, std::uint32_t first,
                     std::uint32_t count, RatingRows& rows);

}  // namespace chunkhit
