#include "cache/decoded_rows.h"

#include <string>

#include "base/throw_error.h"

namespace chunkhit {
namespace {

constexpr std::uint64_t kWord = sizeof(std::uint64_t);
constexpr std::size_t kArrays = 4;

/// Decodes one matrix to `rows` from `at` on, and returns where the next one may begin.
template <class Id>
std::uint64_t decode_matrix(const RowBlockHeader& header, std::size_t matrix, const MatrixShape& shape,
                            bool with_times, std::uint64_t at, MutableBytes rows) {
  const std::uint64_t nnz = header.matrices[matrix].nnz;
  const std::uint64_t ids_at = at + header.row_count * kWord;
  const std::uint64_t values_at = ids_at + round_up(nnz * sizeof(Id), kWord);
  const std::uint64_t value_count = nnz * value_bytes(shape.value_type);
  const std::uint64_t times_at = values_at + round_up(value_count, kWord);
  const std::uint64_t time_count = with_times ? nnz : 0;
  std::uint8_t* const starts = rows.data() + matrix * kArrays * kWord;
  store_little(starts, at);
  store_little(starts + kWord, ids_at);
  store_little(starts + 2 * kWord, values_at);
  store_little(starts + 3 * kWord, with_times ? times_at : 0);
  decode_rows<Id>(header, matrix, shape,
                  {.row_ends = {reinterpret_cast<std::uint64_t*>(rows.data() + at), header.row_count},
                   .first_entry = 0,
                   .ids = {reinterpret_cast<Id*>(rows.data() + ids_at), nnz},
                   .values = rows.subspan(values_at, value_count),
                   .times = {reinterpret_cast<std::int64_t*>(rows.data() + times_at), time_count}});
  return times_at + time_count * kWord;
}

}  // namespace

std::uint64_t max_block_entries(const MatrixShape& shape, std::uint64_t row_count, std::uint64_t raw_bytes) {
  const std::uint64_t least = min_row_block_bytes(row_count, shape);
  const std::uint64_t entry = 1 + value_bytes(shape.value_type) + (shape.has_times ? kWord : 0);
  return raw_bytes < least ? 0 : (raw_bytes - least) / entry;
}

std::uint64_t max_decoded_bytes(const MatrixShape& shape, std::uint64_t row_count, std::uint64_t raw_bytes,
                                bool with_times) {
  const std::uint64_t entry = id_bytes_of(shape) + value_bytes(shape.value_type) + (with_times ? kWord : 0);
  const std::uint64_t padding = 2 * kWord * shape.matrix_count;
  return shape.matrix_count * (kArrays + row_count) * kWord +
         max_block_entries(shape, row_count, raw_bytes) * entry + padding;
}

void decode_rows_to_memory(Bytes raw, const MatrixShape& shape, std::uint64_t row_count, bool with_times,
                           MutableBytes rows) {
  const RowBlockHeader header = decode_row_block_header(raw, shape);
  if (header.row_count != row_count)
    throw_bad_data("a row block of " + std::to_string(header.row_count) + " rows, expected " +
                   std::to_string(row_count));
  std::uint64_t at = shape.matrix_count * kArrays * kWord;
  for (std::size_t matrix = 0; matrix < shape.matrix_count; ++matrix)
    at = id_bytes_of(shape) == sizeof(std::uint16_t)
             ? decode_matrix<std::uint16_t>(header, matrix, shape, with_times, at, rows)
             : decode_matrix<std::uint32_t>(header, matrix, shape, with_times, at, rows);
}

}  // namespace chunkhit
