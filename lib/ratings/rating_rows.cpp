#include "ratings/rating_rows.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "base/throw_error.h"

namespace chunkhit {
namespace {

/// Fewer keys than this are sorted by comparison, which is then faster than counting digits.
constexpr std::size_t kMinKeysToCount = 24;
constexpr int kDigitBits = 8;
constexpr std::size_t kDigits = 1 << kDigitBits;

bool is_before(std::uint64_t a, std::uint64_t b) { return a >> 32 < b >> 32; }

/// Copies the keys to `to` in the order of one digit, below `digit_end`; equal digits keep their order.
void sort_by_digit(std::span<const std::uint64_t> from, int shift, std::size_t digit_end, std::uint64_t* to) {
  // Counting sort: the counts become the offset at which each digit's keys begin.
  std::array<std::uint32_t, kDigits> next{};
  for (const std::uint64_t key : from) ++next[(key >> shift) % kDigits];
  std::uint32_t sum = 0;
  for (std::size_t digit = 0; digit < digit_end; ++digit) {
    const std::uint32_t count = next[digit];
    next[digit] = sum;
    sum += count;
  }
  for (const std::uint64_t key : from) to[next[(key >> shift) % kDigits]++] = key;
}

}  // namespace

/// LSD radix sort by the upper 32 bits (the item). It is stable: equal items keep their order, as in
/// stable_sort.
void KeySort::sort(std::span<std::uint64_t> keys) {
  if (std::is_sorted(keys.begin(), keys.end(), is_before)) return;
  if (keys.size() < kMinKeysToCount || keys.size() > UINT32_MAX) {
    std::stable_sort(keys.begin(), keys.end(), is_before);
    return;
  }
  // Digits that all keys have in common need no pass.
  std::uint64_t differing = 0;
  std::uint64_t all = 0;
  for (const std::uint64_t key : keys) {
    differing |= key ^ keys[0];
    all |= key;
  }
  other_.resize(std::max(other_.size(), keys.size()));
  std::span<std::uint64_t> from = keys;
  std::span<std::uint64_t> to(other_.data(), keys.size());
  for (int shift = 32; shift < 64; shift += kDigitBits) {
    if ((differing >> shift) % kDigits == 0) continue;
    sort_by_digit(from, shift, (all >> shift) % kDigits + 1, to.data());
    std::swap(from, to);
  }
  if (from.data() != keys.data()) std::copy(from.begin(), from.end(), keys.begin());
}

/// Few values are found at their home slot, which stays in the CPU's nearest cache.
bool ValueCodes::encode(std::span<const float> values, std::vector<std::uint8_t>& codes) {
  constexpr std::uint32_t kGoldenRatio = 0x9e3779b9;  // spreads near numbers
  const std::size_t begin = codes.size();
  codes.resize(begin + values.size());
  for (std::size_t at = 0; at < values.size(); ++at) {
    const auto bits = std::bit_cast<std::uint32_t>(values[at]);
    std::size_t slot = bits * kGoldenRatio >> (32 - std::countr_zero(kSlots));
    while (slots_[slot] != 0 && slots_[slot] >> 32 != bits) slot = (slot + 1) % kSlots;
    if (slots_[slot] == 0) {
      if (count_ == values_.size()) return false;
      values_[count_] = values[at];
      slots_[slot] = std::uint64_t{bits} << 32 | ++count_;
    }
    codes[begin + at] = static_cast<std::uint8_t>(slots_[slot] - 1);
  }
  return true;
}

namespace {

struct RowRange {
  std::uint32_t first = 0;  ///< in the bucket
  std::uint32_t count = 0;
};

/// A position in a row is the lower half of a sort key and has 32 bits.
void check_lengths(const RatingRows& rows) {
  for (std::size_t row = 0; row < rows.row_count(); ++row)
    if (rows.indptr[row + 1] - rows.indptr[row] > UINT32_MAX)
      throw_bad_data("user number " + std::to_string(rows.first_user + row) + ": more than 2^32 - 1 ratings");
}

/// Writes each record to the next free position of its user's row, so that rows are in the input's order;
/// `rows.indptr` has been counted by an earlier scan. Returns the largest item.
std::uint32_t scatter_rows(const RecordScan& scan, RowFields fields, RowRange range, RatingRows& rows) {
  const std::uint64_t nnz = rows.indptr.back();
  rows.items.resize(nnz);
  if (fields.values) rows.values.resize(nnz);
  if (fields.times) rows.times.resize(nnz);
  std::vector<std::uint64_t> next(rows.indptr.begin(), rows.indptr.end() - 1);
  std::uint32_t largest_item = 0;
  // Copies, which the numbers that are written cannot change.
  const auto write = [next = next.data(), range, fields, items = rows.items.data(),
                      values = rows.values.data(),
                      times = rows.times.data()](RecordPiece piece, std::uint32_t largest) {
    piece.for_each([&](const RatingRecord& rating) {
      const std::uint32_t row = rating.user - range.first;
      // The subtraction wraps for users before the range, so that one comparison rejects both sides.
      if (row >= range.count) return;
      const std::uint64_t to = next[row]++;
      items[to] = rating.item;
      largest = std::max(largest, rating.item);
      if (fields.values) values[to] = piece.layout.is_wide ? rating.value : fields.codes->value(rating.code);
      if (fields.times) times[to] = rating.time;
    });
    return largest;
  };
  scan([&](RecordPiece piece) { largest_item = write(piece, largest_item); });
  return largest_item;
}

/// Detects rows that have an item twice. Most rows have none and need no sort in RowForm::as_they_came.
class RepeatFinder {
 public:
  /// Keeps the last row of each item, unless that table would be far larger than the rows themselves.
  RepeatFinder(std::uint32_t largest_item, std::uint64_t nnz) {
    if (largest_item / kMaxItemsOfRating < nnz) last_rows_.resize(std::size_t{largest_item} + 1);
  }
  /// Returns true if an item may repeat, in particular always when there is no table.
  [[nodiscard]] bool may_repeat(std::span<const std::uint32_t> items) {
    if (last_rows_.empty()) return true;
    ++row_;
    bool repeats = false;
    for (const std::uint32_t item : items) repeats |= std::exchange(last_rows_[item], row_) == row_;
    return repeats;
  }

 private:
  static constexpr std::size_t kMaxItemsOfRating = 4;
  std::vector<std::uint32_t> last_rows_;  ///< by item: the row's number, from 1
  std::uint32_t row_ = 0;
};

/// Sorts rows by item; equal items stay in the order of the input. Keeps buffers.
class RowSorter {
 public:
  explicit RowSorter(RatingRows& rows) : rows_(rows) {}
  /// Sorts the entries [begin, end) of one row.
  void sort(std::uint64_t begin, std::uint64_t end) {
    const auto items = std::span(rows_.items).subspan(begin, end - begin);
    if (std::ranges::is_sorted(items)) return;
    keys_.resize(items.size());
    for (std::size_t at = 0; at < items.size(); ++at) keys_[at] = std::uint64_t{items[at]} << 32 | at;
    sorter_.sort(keys_);
    for (std::size_t at = 0; at < items.size(); ++at) items[at] = static_cast<std::uint32_t>(keys_[at] >> 32);
    reorder(rows_.values, begin, values_);
    reorder(rows_.times, begin, times_);
    reorder(rows_.positions, begin, positions_);
  }

 private:
  template <class Numbers>
  void reorder(Numbers& numbers, std::uint64_t begin, Numbers& before) {
    if (numbers.empty()) return;
    const auto of_row = std::span(numbers).subspan(begin, keys_.size());
    before.assign(of_row.begin(), of_row.end());
    for (std::size_t at = 0; at < of_row.size(); ++at)
      of_row[at] = before[static_cast<std::uint32_t>(keys_[at])];
  }

  RatingRows& rows_;
  KeySort sorter_;
  RatingRows::Numbers<std::uint64_t> keys_;  ///< item · 2^32 + position in the row
  RatingRows::Numbers<float> values_;
  RatingRows::Numbers<std::int64_t> times_;
  RatingRows::Numbers<std::uint32_t> positions_;
};

/// Sorts each row by item if its form requires it, and notes where its entries were.
void sort_rows(RowForm form, std::uint32_t largest_item, RatingRows& rows) {
  std::optional<RepeatFinder> repeats;
  if (form == RowForm::as_they_came || form == RowForm::came_with_positions)
    repeats.emplace(largest_item, rows.nnz());
  if (form == RowForm::with_positions || form == RowForm::came_with_positions)
    rows.positions.resize(rows.nnz());
  RowSorter sorter(rows);
  for (std::size_t row = 0; row < rows.row_count(); ++row) {
    const std::uint64_t begin = rows.indptr[row];
    const std::uint64_t end = rows.indptr[row + 1];
    if (!rows.positions.empty())
      std::iota(rows.positions.begin() + static_cast<std::ptrdiff_t>(begin),
                rows.positions.begin() + static_cast<std::ptrdiff_t>(end), 0u);
    if (!repeats || repeats->may_repeat(rows.row(row).items)) sorter.sort(begin, end);
  }
}

}  // namespace

/// Counts the records of each user and sums them up to CSR row pointers: `count` + 1 numbers.
std::vector<std::uint64_t> count_records(const RecordScan& scan, std::uint32_t first, std::uint32_t count) {
  std::vector<std::uint64_t> indptr(count + 1);
  scan([&, counts = indptr.data() + 1](RecordPiece piece) {
    piece.for_each([&](const RatingRecord& rating) {
      const std::uint32_t row = rating.user - first;
      if (row < count) ++counts[row];
    });
  });
  for (std::size_t row = 0; row < count; ++row) indptr[row + 1] += indptr[row];
  return indptr;
}

void rows_of_records(const RecordScan& scan, RowFields fields, std::uint32_t first, std::uint32_t count,
                     RatingRows& rows) {
  rows.indptr = count_records(scan, first, count);
  check_lengths(rows);
  sort_rows(fields.form, scatter_rows(scan, fields, {first, count}, rows), rows);
}

}  // namespace chunkhit
