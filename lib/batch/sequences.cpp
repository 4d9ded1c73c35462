#include "batch/sequences.h"

#include <algorithm>
#include <string>

#include "base/bytes.h"
#include "base/random.h"
#include "base/throw_error.h"
#include "base/words.h"
#include "batch/sparse_values.h"

namespace chunkhit {
namespace {

constexpr std::size_t kSequenceAlignment = 64;
constexpr std::size_t kSequenceRowsAhead = 8;  // whose memory is asked for

/// Where the arrays of a block begin, and where it ends.
struct SequenceOffsets {
  SequenceOffsets(std::size_t rows, const SequenceFormat& format)
      : lengths(round_up(rows * format.length * sizeof(std::int64_t), kSequenceAlignment)),
        times(lengths + round_up(rows * sizeof(std::int64_t), kSequenceAlignment)),
        end(times + (format.has_times ? rows * format.length * sizeof(std::int64_t) : 0)) {}
  std::size_t lengths;
  std::size_t times;
  std::size_t end;
};

template <class Id>
void copy_items(const StoredRow& row, SequenceWindow window, std::int64_t* to) {
  const auto* const ids = reinterpret_cast<const Id*>(row.ids);
  std::copy(ids + window.begin, ids + window.end, to);
}

}  // namespace

SequenceWindow sequence_window(std::size_t nnz, std::uint64_t row, std::uint64_t epoch,
                               const SequenceFormat& format) {
  const std::size_t length = format.length;
  if (nnz <= length) return {0, nnz};
  std::size_t end = nnz;
  if (format.cut == SequenceCut::random) {
    const std::uint64_t key = random_bits(format.seed, Purpose::sequence_cut, epoch);
    end = length + random_below(nnz - length + 1, key, Purpose::sequence_cut, row);
  } else if (format.cut == SequenceCut::sliding) {
    // Windows share an item, which is the last target of one and the first input of the next.
    const std::size_t step = std::max<std::size_t>(length - 1, 1);
    const std::uint64_t windows = 1 + (nnz - length + step - 1) / step;
    end = nnz - static_cast<std::size_t>(epoch % windows) * step;
  }
  return {end - std::min(end, length), end};
}

std::size_t sequence_block_bytes(std::size_t rows, const SequenceFormat& format) {
  const std::uint64_t row_bytes = 2 * sizeof(std::int64_t) * (std::uint64_t{format.length} + 1);
  if (rows > kMaxDenseBatchBytes / row_bytes)
    throw_usage("`length`: a batch of " + count_text(rows, "row") + " and " +
                count_text(format.length, "item") + " has " +
                bytes_text(static_cast<double>(rows) * static_cast<double>(row_bytes)) +
                ", at most 1 GiB is handed out; take a smaller `batch_size`");
  return SequenceOffsets(rows, format).end;
}

SequenceBatch write_sequences(std::span<const StoredRow> rows, std::span<const std::uint64_t> numbers,
                              std::uint64_t epoch, const SequenceFormat& format, std::uint8_t* block) {
  const SequenceOffsets offsets(rows.size(), format);
  const std::size_t length = format.length;
  auto* const items = reinterpret_cast<std::int64_t*>(block);
  auto* const lengths = reinterpret_cast<std::int64_t*>(block + offsets.lengths);
  auto* const times = reinterpret_cast<std::int64_t*>(block + offsets.times);
  for (std::size_t at = 0; at < rows.size(); ++at) {
    if (at + kSequenceRowsAhead < rows.size()) {
      const StoredRow& ahead = rows[at + kSequenceRowsAhead];
      __builtin_prefetch(ahead.ids + (ahead.nnz - std::min(ahead.nnz, length)) * format.id_bytes);
    }
    const StoredRow& row = rows[at];
    const SequenceWindow window = sequence_window(row.nnz, numbers[at], epoch, format);
    const std::size_t count = window.end - window.begin;
    std::int64_t* const to = items + at * length;
    std::fill_n(to, length - count, static_cast<std::int64_t>(format.column_count));
    if (format.id_bytes == sizeof(std::uint16_t))
      copy_items<std::uint16_t>(row, window, to + (length - count));
    else
      copy_items<std::uint32_t>(row, window, to + (length - count));
    lengths[at] = static_cast<std::int64_t>(count);
    if (!format.has_times) continue;
    std::fill_n(times + at * length, length - count, std::int64_t{0});
    std::copy(row.times + window.begin, row.times + window.end, times + at * length + (length - count));
  }
  return {.length = length,
          .items = {items, rows.size() * length},
          .lengths = {lengths, rows.size()},
          .times = {times, format.has_times ? rows.size() * length : 0},
          .block = {block, offsets.end}};
}

}  // namespace chunkhit
