// What stands beside the rows of a matrix: labels and query numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace chunkhit {

/// Labels of rows, in the order of rows; a row has none, one or several.
struct RowLabels {
  static constexpr std::int64_t kNoGroup = INT64_MIN;
  std::vector<float> values;         ///< of all rows, one after the other
  std::vector<std::uint64_t> ends;   ///< where each row's labels end in `values`
  std::vector<std::int64_t> groups;  ///< the query that each row belongs to, or kNoGroup; empty: none has one
  /// Bytes of memory that they take.
  [[nodiscard]] std::uint64_t memory_bytes() const {
    return values.capacity() * sizeof(float) + (ends.capacity() + groups.capacity()) * sizeof(std::uint64_t);
  }
  [[nodiscard]] std::size_t row_count() const { return ends.size(); }
  [[nodiscard]] std::span<const float> of_row(std::size_t row) const {
    const std::uint64_t begin = row == 0 ? 0 : ends[row - 1];
    return std::span(values).subspan(begin, ends[row] - begin);
  }
};

}  // namespace chunkhit
