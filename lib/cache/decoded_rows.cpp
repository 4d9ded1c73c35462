#include "cache/decoded_rows.h"

#include <algorithm>
#include <compare>
#include <span>
#include <string>
#include <vector>

#include "base/throw_error.h"

namespace chunkhit {
namespace {

constexpr std::uint64_t kWord = sizeof(std::uint64_t);
constexpr std::size_t kArrays = 4;

/// What orders the entries of a row by time.
struct TimeKey {
  std::int64_t time;
  std::uint32_t tie;
  std::uint32_t at;  ///< in the row as stored
  auto operator<=>(const TimeKey&) const = default;
};

/// Puts the numbers of a row into the order of its keys.
template <class Number>
void reorder(std::span<const TimeKey> keys, Number* numbers, std::vector<Number>& before) {
  before.assign(numbers, numbers + keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) numbers[i] = before[keys[i].at];
}

/// Orders the entries of each row by time. Values, of 0, 1, 2 or 4 bytes, go along.
template <class Id>
void order_by_time(std::span<const std::uint64_t> row_ends, std::span<std::int64_t> times,
                   std::span<const std::uint32_t> ties, Id* ids, MutableBytes values) {
  std::vector<TimeKey> keys;
  std::vector<Id> old_ids;
  std::vector<std::int64_t> old_times;
  ByteBuffer old_values;
  const std::size_t width = times.empty() ? 0 : values.size() / times.size();
  std::size_t begin = 0;
  for (const std::uint64_t end : row_ends) {
    keys.resize(end - begin);
    for (std::size_t at = 0; at < keys.size(); ++at)
      keys[at] = {times[begin + at], ties[begin + at], static_cast<std::uint32_t>(at)};
    if (!std::ranges::is_sorted(keys)) {
      std::ranges::sort(keys);
      reorder<Id>(keys, ids + begin, old_ids);
      reorder<std::int64_t>(keys, times.data() + begin, old_times);
      const MutableBytes of_row = values.subspan(begin * width, keys.size() * width);
      old_values.assign(of_row.begin(), of_row.end());
      for (std::size_t i = 0; i < of_row.size(); ++i)
        of_row[i] = old_values[keys[i / width].at * width + i % width];
    }
    begin = end;
  }
}

/// Decodes one matrix to `rows` from `at` on, and returns where the next one may begin.
template <class Id>
std::uint64_t decode_matrix(const RowBlockHeader& header, std::size_t matrix, const MatrixShape& shape,
                            RowArrays arrays, std::uint64_t at, MutableBytes rows) {
  const std::uint64_t nnz = header.matrices[matrix].nnz;
  const std::uint64_t ids_at = at + header.row_count * kWord;
  const std::uint64_t values_at = ids_at + round_up(nnz * sizeof(Id), kWord);
  const std::uint64_t value_count = nnz * value_bytes(shape.value_type);
  const std::uint64_t times_at = values_at + round_up(value_count, kWord);
  const std::uint64_t time_count = arrays.times ? nnz : 0;
  // For the order alone, where times are not wanted.
  std::vector<std::int64_t> own_times(arrays.by_time && !arrays.times ? nnz : 0);
  std::vector<std::uint32_t> ties(arrays.by_time ? nnz : 0);
  std::uint8_t* const starts = rows.data() + matrix * kArrays * kWord;
  store_little(starts, at);
  store_little(starts + kWord, ids_at);
  store_little(starts + 2 * kWord, values_at);
  store_little(starts + 3 * kWord, arrays.times ? times_at : 0);
  const std::span row_ends(reinterpret_cast<std::uint64_t*>(rows.data() + at), header.row_count);
  const std::span times(reinterpret_cast<std::int64_t*>(rows.data() + times_at), time_count);
  const std::span ids(reinterpret_cast<Id*>(rows.data() + ids_at), nnz);
  const MutableBytes values = rows.subspan(values_at, value_count);
  decode_rows<Id>(header, matrix, shape,
                  {.row_ends = row_ends,
                   .first_entry = 0,
                   .ids = ids,
                   .values = values,
                   .times = own_times.empty() ? times : std::span(own_times),
                   .ties = ties});
  if (arrays.by_time)
    order_by_time<Id>(row_ends, own_times.empty() ? times : std::span(own_times), ties, ids.data(), values);
  return times_at + time_count * kWord;
}

}  // namespace

std::uint64_t max_block_entries(const MatrixShape& shape, std::uint64_t row_count, std::uint64_t raw_bytes) {
  const std::uint64_t least = min_row_block_bytes(row_count, shape);
  const std::uint64_t entry = 1 + value_bytes(shape.value_type) + (shape.has_times ? kWord : 0) +
                              (shape.has_repeats ? sizeof(std::uint32_t) : 0);
  return raw_bytes < least ? 0 : (raw_bytes - least) / entry;
}

std::uint64_t max_decoded_bytes(const MatrixShape& shape, std::uint64_t row_count, std::uint64_t raw_bytes,
                                bool with_times) {
  const std::uint64_t entry = id_bytes_of(shape) + value_bytes(shape.value_type) + (with_times ? kWord : 0);
  const std::uint64_t padding = 2 * kWord * shape.matrix_count;
  return shape.matrix_count * (kArrays + row_count) * kWord +
         max_block_entries(shape, row_count, raw_bytes) * entry + padding;
}

void decode_rows_to_memory(Bytes raw, const MatrixShape& shape, std::uint64_t row_count, RowArrays arrays,
                           MutableBytes rows) {
  const RowBlockHeader header = decode_row_block_header(raw, shape);
  if (header.row_count != row_count)
    throw_bad_data("a row block of " + std::to_string(header.row_count) + " rows, expected " +
                   std::to_string(row_count));
  std::uint64_t at = shape.matrix_count * kArrays * kWord;
  for (std::size_t matrix = 0; matrix < shape.matrix_count; ++matrix)
    at = id_bytes_of(shape) == sizeof(std::uint16_t)
             ? decode_matrix<std::uint16_t>(header, matrix, shape, arrays, at, rows)
             : decode_matrix<std::uint32_t>(header, matrix, shape, arrays, at, rows);
}

}  // namespace chunkhit
