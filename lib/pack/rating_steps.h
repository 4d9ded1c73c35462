// From the ratings of the input to those that are packed, and how many are left after each step.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "chunkhit/error.h"
#include "pack/rating_rules.h"
#include "pack/rating_store.h"
#include "pack/row_store.h"

namespace chunkhit {

/// What is left after a step: users and items with at least one rating.
struct StepCounts {
  std::string name;  ///< as RowStep, or "binarize", "reuse-ids", "min-item", "min-user"
  std::uint64_t users = 0;
  std::uint64_t items = 0;
  std::uint64_t ratings = 0;
};

/// Names a rating that is there several times where that is an error: by numbers, for who knows the ids.
class DuplicateError : public Error {
 public:
  DuplicateError(std::uint32_t user, std::uint32_t item, std::uint64_t count);
  std::uint32_t user;   ///< the lowest one; and of this user
  std::uint32_t item;   ///< the lowest one
  std::uint64_t count;  ///< ratings beyond the first of their user and item, in all
};

/// Applies the rules for single users to all of `store`, which is emptied, and appends the steps that were
/// asked for. Rows have the form that is asked for, and times where they have places. They are kept in memory
/// unless `store` was spilled. Throws DuplicateError, bad_data, cannot_write.
[[nodiscard]] RowStore clean_rows(RatingStore& store, const RatingRules& rules, RowForm form,
                                  std::vector<StepCounts>& steps);

/// Which users and items are left: 1 or 0 for each.
struct LiveRatings {
  std::vector<std::uint8_t> users;
  std::vector<std::uint8_t> items;
};

/// Leaves the items of `frozen`, by number (those that the input has not are ignored), and appends the step
/// "reuse-ids".
void keep_known_items(const RowStore& rows, std::span<const std::uint32_t> frozen, LiveRatings& live,
                      std::vector<StepCounts>& steps);

/// Applies min_user and min_item and appends their steps; drops users without ratings of live items in any
/// case.
void keep_frequent(const RowStore& rows, const RatingRules& rules, LiveRatings& live,
                   std::vector<StepCounts>& steps);

}  // namespace chunkhit
