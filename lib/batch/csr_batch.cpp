#include "batch/csr_batch.h"

#include <cstring>
#include <string>

#include "base/bytes.h"
#include "chunkhit/error.h"

namespace chunkhit {
namespace {

constexpr std::size_t kAlignment = 64;

std::size_t indices_offset(std::size_t rows) {
  return round_up((rows + 1) * sizeof(std::int32_t), kAlignment);
}

std::size_t values_offset(std::size_t rows, std::size_t nnz) {
  return indices_offset(rows) + round_up(nnz * sizeof(std::int32_t), kAlignment);
}

// A loop over what cannot overlap, so that it is vectorised.
void widen(const std::uint8_t* __restrict ids, std::size_t count, std::int32_t* __restrict indices) {
  for (std::size_t i = 0; i < count; ++i)
    indices[i] = load_little<std::uint16_t>(ids + i * sizeof(std::uint16_t));
}

}  // namespace

std::size_t csr_block_bytes(std::size_t rows, std::uint64_t nnz) {
  if (nnz > INT32_MAX || rows >= INT32_MAX)
    throw Error(ErrorCode::usage, "batch_size: a batch of " + std::to_string(rows) + " rows may have " +
                                      std::to_string(nnz) + " entries, at most 2147483647 are handed out");
  return values_offset(rows, nnz) + nnz * sizeof(float);
}

CsrBatchWriter::CsrBatchWriter(std::uint8_t* block, std::size_t row_count, std::size_t nnz)
    : block_(block),
      indptr_(reinterpret_cast<std::int32_t*>(block)),
      indices_(reinterpret_cast<std::int32_t*>(block + indices_offset(row_count))),
      values_(reinterpret_cast<float*>(block + values_offset(row_count, nnz))) {
  indptr_[0] = 0;
}

void CsrBatchWriter::append(const StoredRow& row, const EntryValues& values) {
  std::int32_t* const indices = indices_ + nnz_;
  if (values.format().id_bytes == sizeof(std::int32_t)) {
    if (row.nnz != 0) std::memcpy(indices, row.ids, row.nnz * sizeof(std::int32_t));
  } else {
    widen(row.ids, row.nnz, indices);
  }
  values.calculate(row, {values_ + nnz_, row.nnz});
  nnz_ += row.nnz;
  indptr_[++row_count_] = static_cast<std::int32_t>(nnz_);
}

CsrBatch CsrBatchWriter::batch() const {
  const auto bytes = static_cast<std::size_t>(reinterpret_cast<std::uint8_t*>(values_ + nnz_) - block_);
  return {{indptr_, row_count_ + 1}, {indices_, nnz_}, {values_, nnz_}, {block_, bytes}};
}

}  // namespace chunkhit
