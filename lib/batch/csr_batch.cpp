#include "batch/csr_batch.h"

#include <cstring>
#include <string>

#include "base/bytes.h"
#include "batch/wide_rows.h"
#include "chunkhit/error.h"

namespace chunkhit {
namespace {

constexpr std::size_t kAlignment = 64;
/// How many rows ahead memory is asked for: a row is some lines of columns and some of values.
constexpr std::size_t kRowsAhead = 4;

std::size_t indices_offset(std::size_t rows) {
  return round_up((rows + 1) * sizeof(std::int32_t), kAlignment);
}

std::size_t values_offset(std::size_t rows, std::size_t nnz) {
  return indices_offset(rows) + round_up(nnz * sizeof(std::int32_t), kAlignment);
}

void copy_ids(const StoredRow& row, std::size_t id_bytes, std::int32_t* indices) {
  if (id_bytes == sizeof(std::uint16_t))
    widen_ids(reinterpret_cast<const std::uint16_t*>(row.ids), row.nnz, indices);
  else if (row.nnz != 0)
    std::memcpy(indices, row.ids, row.nnz * sizeof(std::int32_t));
}

}  // namespace

std::size_t csr_block_bytes(std::size_t rows, std::uint64_t nnz) {
  if (nnz > INT32_MAX || rows >= INT32_MAX)
    throw Error(ErrorCode::usage, "batch_size: a batch of " + std::to_string(rows) + " rows may have " +
                                      std::to_string(nnz) + " entries, at most 2147483647 are handed out");
  return values_offset(rows, nnz) + nnz * sizeof(float);
}

CsrBatch write_csr_batch(std::span<const StoredRow> rows, const EntryValues& values, std::uint8_t* block) {
  std::size_t nnz = 0;
  for (const StoredRow& row : rows) nnz += row.nnz;
  auto* const indptr = reinterpret_cast<std::int32_t*>(block);
  auto* const indices = reinterpret_cast<std::int32_t*>(block + indices_offset(rows.size()));
  auto* const numbers = reinterpret_cast<float*>(block + values_offset(rows.size(), nnz));
  std::size_t at = 0;
  indptr[0] = 0;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if (row + kRowsAhead < rows.size()) prefetch_row(rows[row + kRowsAhead], values.format());
    copy_ids(rows[row], values.format().id_bytes, indices + at);
    values.calculate(rows[row], {numbers + at, rows[row].nnz});
    at += rows[row].nnz;
    indptr[row + 1] = static_cast<std::int32_t>(at);
  }
  const auto bytes = static_cast<std::size_t>(reinterpret_cast<std::uint8_t*>(numbers + nnz) - block);
  return {{indptr, rows.size() + 1}, {indices, nnz}, {numbers, nnz}, {block, bytes}};
}

}  // namespace chunkhit
