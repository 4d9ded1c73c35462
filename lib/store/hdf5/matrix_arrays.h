// Arrays of HDF5 files ↔ rows of sparse matrices. Layout: schemas/matrix-hdf5.md.
#pragma once

#include <cstdint>
#include <string>

#include "store/hdf5/handle.h"
#include "types/csr_rows.h"

namespace chunkhit {

/// A matrix and its width.
struct SizedRows {
  std::uint64_t column_count = 0;
  CsrRows rows;
};

/// Reads a group with a CSR or CSC matrix, or an array of two dimensions, without its zeros. Throws bad_data
/// when it is none, its numbers do not fit each other, or a row has a column twice.
[[nodiscard]] SizedRows read_matrix(const Hdf5Source& source, const std::string& path);

}  // namespace chunkhit
