// The ratings of some users as rows, with what the rules and the splits ask of each rating.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace chunkhit {

/// How a row lies.
enum class RowForm {
  ascending,     ///< by item; equal ones in the input's order
  with_places,   ///< the same, with places
  as_they_came,  ///< in the input's order; ascending where an item is there twice
};

/// Views one user's ratings. Vectors that are there are as long as `items`.
struct RatingRow {
  std::uint32_t user = 0;
  std::span<const std::uint32_t> items;
  std::span<const float> values;          ///< empty: every value is 1
  std::span<const std::int64_t> times;    ///< empty: not kept
  std::span<const std::uint32_t> places;  ///< among the user's ratings in the input; empty: not kept
};

/// Owns the rows of consecutive users.
struct RatingRows {
  std::uint32_t first_user = 0;
  std::vector<std::uint64_t> indptr{0};  ///< row r has the entries [indptr[r], indptr[r + 1])
  std::vector<std::uint32_t> items;      ///< of a row as RowForm says
  std::vector<float> values;             ///< empty: every value is 1
  std::vector<std::int64_t> times;       ///< empty: not kept
  std::vector<std::uint32_t> places;     ///< among the user's ratings in the input; empty: not kept
  [[nodiscard]] std::size_t row_count() const { return indptr.size() - 1; }
  [[nodiscard]] std::size_t nnz() const { return items.size(); }
  [[nodiscard]] RatingRow row(std::size_t index) const {
    const std::size_t from = indptr[index];
    const std::size_t count = indptr[index + 1] - from;
    const auto part = [&](const auto& all) {
      return all.empty() ? std::span(all) : std::span(all).subspan(from, count);
    };
    return {first_user + static_cast<std::uint32_t>(index), part(items), part(values), part(times),
            part(places)};
  }
};

}  // namespace chunkhit
