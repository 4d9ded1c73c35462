// A row of a matrix as it lies in memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace chunkhit {

/// Views one row: `nnz` ascending columns of 2 or 4 bytes each, and as many values as they are stored.
struct StoredRow {
  const std::uint8_t* ids = nullptr;     ///< aligned to the bytes of a column
  const std::uint8_t* values = nullptr;  ///< null with ValueType::none
  std::size_t nnz = 0;
};

}  // namespace chunkhit
