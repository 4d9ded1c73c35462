// Rows of a sparse matrix (CSR): where each row begins, the columns of its entries, their values.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "chunkhit/pack_info.h"

namespace chunkhit {

/// Views one row: `nnz` columns of 2 or 4 bytes each, ascending or by time, and as many values as stored.
struct StoredRow {
  const std::uint8_t* ids = nullptr;     ///< aligned to the bytes of a column
  const std::uint8_t* values = nullptr;  ///< null with ValueType::none
  std::size_t nnz = 0;
  const std::int64_t* times = nullptr;  ///< null where they are not kept
};

/// Which arrays rows in memory have, and the order of their entries.
struct RowArrays {
  bool times = true;     ///< where ratings have times
  bool by_time = false;  ///< entries in the order of their times; else columns ascend
};

/// Bytes of one stored value.
[[nodiscard]] constexpr std::size_t value_bytes(ValueType type) {
  constexpr std::array<std::size_t, 4> kBytes{0, 1, 2, 4};
  return kBytes[static_cast<std::size_t>(type)];
}

/// Finds the stored number of a rating; false unless number · scale, rounded to f32, is the rating.
template <class Number>
[[nodiscard]] bool find_stored_number(float rating, double scale, Number& number) {
  const double nearest = std::nearbyint(rating / scale);
  if (!(nearest >= 0 && nearest <= double{static_cast<Number>(-1)})) return false;
  number = static_cast<Number>(nearest);
  return static_cast<float>(nearest * scale) == rating;
}

/// Views rows of a sparse matrix. `indptr` has one number more than there are rows; its first need not be 0:
/// row r has the entries [indptr[r] - indptr[0], indptr[r + 1] - indptr[0]) of `indices` and `values`.
struct CsrView {
  std::span<const std::uint64_t> indptr;
  std::span<const std::uint32_t> indices;  ///< columns, ascending in a row, each at most once
  std::span<const float> values;           ///< empty: every entry is 1
  std::span<const std::int64_t> times;     ///< empty: not kept
  /// Of equal times in a row the entry with the smaller number is first; of equal numbers, or where this is
  /// empty, that with the smaller column.
  std::span<const std::uint32_t> ties = {};
  [[nodiscard]] std::size_t row_count() const { return indptr.empty() ? 0 : indptr.size() - 1; }
  [[nodiscard]] std::size_t nnz() const { return indices.size(); }
};

/// Owns rows of a sparse matrix.
struct CsrRows {
  std::vector<std::uint64_t> indptr{0};  ///< begins with 0
  std::vector<std::uint32_t> indices;
  std::vector<float> values;        ///< empty: every entry is 1
  std::vector<std::int64_t> times;  ///< empty: not kept
  std::vector<std::uint32_t> ties;  ///< as in CsrView
  [[nodiscard]] std::size_t row_count() const { return indptr.size() - 1; }
  [[nodiscard]] std::size_t nnz() const { return indices.size(); }
  [[nodiscard]] CsrView view() const { return {indptr, indices, values, times, ties}; }
  /// Rows [first, end).
  [[nodiscard]] CsrView view(std::size_t first, std::size_t end) const {
    const std::size_t from = indptr[first];
    const std::size_t count = indptr[end] - from;
    const auto part = [&](const auto& all) {
      return all.empty() ? std::span(all) : std::span(all).subspan(from, count);
    };
    return {std::span(indptr).subspan(first, end - first + 1), part(indices), part(values), part(times),
            part(ties)};
  }
};

}  // namespace chunkhit
