// Rows of a sparse matrix (CSR): where each row begins, the columns of its entries, their values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace chunkhit {

/// Views rows of a sparse matrix. `indptr` has one number more than there are rows; its first need not be 0:
/// row r has the entries [indptr[r] - indptr[0], indptr[r + 1] - indptr[0]) of `indices` and `values`.
struct CsrView {
  std::span<const std::uint64_t> indptr;
  std::span<const std::uint32_t> indices;  ///< columns, ascending in a row, each at most once
  std::span<const float> values;           ///< empty: every entry is 1
  [[nodiscard]] std::size_t row_count() const { return indptr.empty() ? 0 : indptr.size() - 1; }
  [[nodiscard]] std::size_t nnz() const { return indices.size(); }
};

/// Owns rows of a sparse matrix.
struct CsrRows {
  std::vector<std::uint64_t> indptr{0};  ///< begins with 0
  std::vector<std::uint32_t> indices;
  std::vector<float> values;  ///< empty: every entry is 1
  [[nodiscard]] std::size_t row_count() const { return indptr.size() - 1; }
  [[nodiscard]] std::size_t nnz() const { return indices.size(); }
  [[nodiscard]] CsrView view() const { return {indptr, indices, values}; }
  /// Rows [first, end).
  [[nodiscard]] CsrView view(std::size_t first, std::size_t end) const {
    const std::size_t from = indptr[first];
    const std::size_t count = indptr[end] - from;
    return {std::span(indptr).subspan(first, end - first + 1), std::span(indices).subspan(from, count),
            values.empty() ? std::span<const float>() : std::span(values).subspan(from, count)};
  }
};

}  // namespace chunkhit
