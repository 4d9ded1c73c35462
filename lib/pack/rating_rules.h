// What is done to the ratings of each user by themselves: zeros, duplicates, limits on values.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "pack/rating_rows.h"

namespace chunkhit {

/// Whether ratings of value 0 count.
enum class Zeros { drop, keep };
inline constexpr std::array<std::string_view, 2> kZerosNames{"drop", "keep"};

/// What is made of several ratings of one item by one user. `last` and `first` are by time where there are
/// times; of equal ones, and without times, the last or first in the input. `max`: of equal ones the first in
/// the input. What results has the time and the position of the rating that is kept; with `sum` of the last
/// one.
enum class Duplicates { error, sum, last, first, max };
inline constexpr std::array<std::string_view, 5> kDuplicatesNames{"error", "sum", "last", "first", "max"};

/// The steps, in their order.
struct RatingRules {
  Zeros zeros = Zeros::drop;
  Duplicates duplicates = Duplicates::error;
  std::optional<float> min_value{};  ///< keeps values >= this
  std::optional<float> above{};      ///< keeps values > this
  bool binarize = false;             ///< values become 1
  std::uint64_t min_user = 0;        ///< keeps users with at least so many ratings
  std::uint64_t min_item = 0;        ///< keeps items with at least so many ratings
  bool rounds_values = false;        ///< sums that 32-bit floats do not hold become the nearest
  bool filter_once = false;          ///< items, then users, once (vae_cf); else until both hold
};

/// The steps that look at one user alone.
enum class RowStep : std::uint8_t { input, zeros, duplicates, min_value, above };
inline constexpr std::size_t kRowSteps = 5;
inline constexpr std::array<std::string_view, kRowSteps> kRowStepNames{"input", "zeros", "duplicates",
                                                                       "min-value", "above"};

/// What was left after each of them.
struct RowStepCounts {
  std::array<std::uint64_t, kRowSteps> users{};    ///< with at least one rating
  std::array<std::uint64_t, kRowSteps> ratings{};  ///< after `duplicates` also of what was merged: pairs
  std::optional<std::pair<std::uint32_t, std::uint32_t>> first_duplicate;  ///< lowest user, then item
  void add(const RowStepCounts& other);
};

/// Remembers for each item the last step after which it had ratings. Several threads may mark.
class ItemSteps {
 public:
  explicit ItemSteps(std::uint32_t item_count) : last_(item_count) {}
  /// Notes that a rating of the item was left after `step`.
  void mark(std::uint32_t item, RowStep step);
  /// Items with at least one rating after each step.
  [[nodiscard]] std::array<std::uint64_t, kRowSteps> counts() const;

 private:
  std::vector<std::atomic<std::uint8_t>> last_;  ///< step and 1; 0: no rating at all
};

/// Applies zeros, duplicates, min_value, above and binarize to rows, in place. With Duplicates::error
/// duplicates are counted and the first is kept. Throws bad_data where a value is not finite.
[[nodiscard]] RowStepCounts apply_rules(const RatingRules& rules, RatingRows& rows, ItemSteps& items);

}  // namespace chunkhit
