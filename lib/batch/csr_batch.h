// Rows of a sparse matrix side by side in CSR form, in one piece of memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "batch/entry_values.h"
#include "chunkhit/sparse.h"

namespace chunkhit {

/// Bytes of a block for so many rows and entries. Throws usage above 2^31 - 1 entries, which int32 cannot
/// count.
[[nodiscard]] std::size_t csr_block_bytes(std::size_t rows, std::uint64_t nnz);

/// Writes rows one after the other into a block of csr_block_bytes(row_count, nnz) bytes, aligned to 64.
class CsrBatchWriter {
 public:
  CsrBatchWriter(std::uint8_t* block, std::size_t row_count, std::size_t nnz);
  /// Appends the next row; all together have `row_count` rows and `nnz` entries.
  void append(const StoredRow& row, const EntryValues& values);
  /// What was written.
  [[nodiscard]] CsrBatch batch() const;

 private:
  std::uint8_t* block_;
  std::int32_t* indptr_;
  std::int32_t* indices_;
  float* values_;
  std::size_t row_count_ = 0;
  std::size_t nnz_ = 0;
};

}  // namespace chunkhit
