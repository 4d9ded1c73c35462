// Rows of a sparse matrix side by side in CSR form, in one piece of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "batch/entry_values.h"
#include "chunkhit/sparse.h"

namespace chunkhit {

/// Bytes of a block for so many rows and entries. Throws usage above 2^31 - 1 entries, which int32 cannot
/// count.
[[nodiscard]] std::size_t csr_block_bytes(std::size_t rows, std::uint64_t nnz);

/// Writes rows one after the other into a block of csr_block_bytes(rows.size(), their entries) bytes, aligned
/// to 64.
[[nodiscard]] CsrBatch write_csr_batch(std::span<const StoredRow> rows, const EntryValues& values,
                                       std::uint8_t* block);

}  // namespace chunkhit
