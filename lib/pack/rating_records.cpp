#include "pack/rating_records.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "chunkhit/error.h"
#include "pack/key_sort.h"

namespace chunkhit {
namespace {

template <class T>
using Unwritten = std::vector<T, UnwrittenAllocator<T>>;

/// The ratings of a bucket's users by user, each row still in the input's order.
struct UnsortedRows {
  Unwritten<std::uint64_t> keys;  ///< item · 2^32 + place in the row
  Unwritten<float> values;
  Unwritten<std::int64_t> times;
  std::uint32_t largest_item = 0;
};

struct RowRange {
  std::uint32_t first = 0;  ///< in the bucket
  std::uint32_t count = 0;
};

/// Places in a row have 32 bits.
void check_lengths(const RatingRows& rows) {
  for (std::size_t row = 0; row < rows.row_count(); ++row)
    if (rows.indptr[row + 1] - rows.indptr[row] > UINT32_MAX)
      throw Error(ErrorCode::bad_data,
                  "user number " + std::to_string(rows.first_user + row) + ": more than 2^32 - 1 ratings");
}

UnsortedRows scatter_rows(const RecordScan& scan, bool has_times, RowRange range,
                          const std::vector<std::uint64_t>& indptr) {
  const std::uint64_t nnz = indptr.back();
  UnsortedRows rows{Unwritten<std::uint64_t>(nnz), Unwritten<float>(nnz),
                    Unwritten<std::int64_t>(has_times ? nnz : 0), 0};
  std::vector<std::uint64_t> next(indptr.begin(), indptr.end() - 1);
  scan([&](Bytes piece) {
    for (std::size_t at = 0; at < piece.size(); at += record_bytes(has_times)) {
      const std::uint8_t* record = piece.data() + at;
      const std::uint32_t row = load_little<std::uint16_t>(record) - range.first;
      if (row >= range.count) continue;
      const std::uint64_t to = next[row]++;
      const auto item = load_little<std::uint32_t>(record + kRecordItemAt);
      rows.largest_item = std::max(rows.largest_item, item);
      rows.keys[to] = std::uint64_t{item} << 32 | (to - indptr[row]);
      rows.values[to] = load_little<float>(record + kRecordValueAt);
      if (has_times) rows.times[to] = load_little<std::int64_t>(record + kRecordTimeAt);
    }
  });
  return rows;
}

/// Tells rows in which an item is there twice.
class RepeatFinder {
 public:
  /// Remembers the row that each item was last seen in, unless that takes far more than the rows.
  explicit RepeatFinder(const UnsortedRows& rows) {
    if (rows.largest_item / kMaxItemsOfRating < rows.keys.size())
      last_rows_.resize(std::size_t{rows.largest_item} + 1);
  }
  /// Also true where nothing is known.
  [[nodiscard]] bool may_repeat(std::span<const std::uint64_t> keys) {
    if (last_rows_.empty()) return true;
    ++row_;
    bool repeats = false;
    for (const std::uint64_t key : keys) repeats |= std::exchange(last_rows_[key >> 32], row_) == row_;
    return repeats;
  }

 private:
  static constexpr std::size_t kMaxItemsOfRating = 4;
  std::vector<std::uint32_t> last_rows_;  ///< by item: the row's number, from 1
  std::uint32_t row_ = 0;
};

/// Gives each row the form that is wanted; equal items stay in the input's order.
void sort_rows(UnsortedRows& from, RecordFields fields, RatingRows& to) {
  const std::uint64_t nnz = from.keys.size();
  to.items.resize(nnz);
  if (fields.values) to.values.resize(nnz);
  to.times.resize(from.times.size());
  const bool has_places = fields.form == RowForm::with_places;
  if (has_places) to.places.resize(nnz);
  KeySort sorter;
  std::optional<RepeatFinder> repeats;
  if (fields.form == RowForm::as_they_came) repeats.emplace(from);
  for (std::size_t row = 0; row < to.row_count(); ++row) {
    const std::uint64_t begin = to.indptr[row];
    const std::uint64_t end = to.indptr[row + 1];
    std::uint64_t* const keys = from.keys.data();
    if (!repeats || repeats->may_repeat({keys + begin, keys + end})) sorter.sort({keys + begin, keys + end});
    for (std::uint64_t at = begin; at < end; ++at) {
      const auto place = static_cast<std::uint32_t>(keys[at]);
      to.items[at] = static_cast<std::uint32_t>(keys[at] >> 32);
      if (fields.values) to.values[at] = from.values[begin + place];
      if (!to.times.empty()) to.times[at] = from.times[begin + place];
      if (has_places) to.places[at] = place;
    }
  }
}

}  // namespace

std::vector<std::uint64_t> count_records(const RecordScan& scan, bool has_times, std::uint32_t first,
                                         std::uint32_t count) {
  std::vector<std::uint64_t> indptr(count + 1);
  scan([&](Bytes piece) {
    for (std::size_t at = 0; at < piece.size(); at += record_bytes(has_times)) {
      const std::uint32_t row = load_little<std::uint16_t>(piece.data() + at) - first;
      if (row < count) ++indptr[row + 1];
    }
  });
  for (std::size_t row = 0; row < count; ++row) indptr[row + 1] += indptr[row];
  return indptr;
}

void rows_of_records(const RecordScan& scan, RecordFields fields, std::uint32_t first, std::uint32_t count,
                     RatingRows& rows) {
  rows.indptr = count_records(scan, fields.times, first, count);
  check_lengths(rows);
  UnsortedRows unsorted = scatter_rows(scan, fields.times, {first, count}, rows.indptr);
  sort_rows(unsorted, fields, rows);
}

}  // namespace chunkhit
