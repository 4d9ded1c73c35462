// From the ratings of the input to those that are packed, and how many are left after each step.
#pragma once

#include <oneapi/tbb/enumerable_thread_specific.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "chunkhit/error.h"
#include "chunkhit/pack_info.h"
#include "chunkhit/sparse_spec.h"
#include "ratings/rating_store.h"
#include "types/enum_names.h"

namespace chunkhit {

/// Counts for each item; needs 4 bytes an item and thread. An item has less than 2^32 ratings: each user has
/// one at most, or where all are kept there are no more in all.
class ItemCounter {
 public:
  explicit ItemCounter(std::size_t item_count)
      : counts_([item_count] { return std::vector<std::uint32_t>(item_count); }), item_count_(item_count) {}
  /// The calling thread's counts.
  [[nodiscard]] std::vector<std::uint32_t>& local() { return counts_.local(); }
  /// Returns the sums of all threads; call it when they have ended.
  [[nodiscard]] std::vector<std::uint32_t> sum() const {
    std::vector<std::uint32_t> sum(item_count_);
    for (const std::vector<std::uint32_t>& counts : counts_)
      for (std::size_t item = 0; item < item_count_; ++item) sum[item] += counts[item];
    return sum;
  }

 private:
  tbb::enumerable_thread_specific<std::vector<std::uint32_t>> counts_;
  std::size_t item_count_;
};

/// The steps that look at one user alone.
enum class RowStep : std::uint8_t { input, zeros, duplicates, above };
inline constexpr std::size_t kRowSteps = 4;
constexpr Words<kRowSteps> words_of(RowStep) { return {"input", "zeros", "duplicates", "above"}; }

/// What was left after each of them.
struct RowStepCounts {
  std::array<std::uint64_t, kRowSteps> users{};    ///< users with at least one rating
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

/// Applies zeros, duplicates, above and binarize to rows, in place. With Duplicates::error
/// duplicates are counted and the first is kept. With Duplicates::keep those of an item are sorted by time,
/// equal ones as in the input. Throws bad_data where a value is not finite.
[[nodiscard]] RowStepCounts apply_rules(const RatingRules& rules, RatingRows& rows, ItemSteps& items);

/// Names a rating that is repeated where that is an error: by numbers, which the caller maps to ids.
class DuplicateError : public Error {
 public:
  DuplicateError(std::uint32_t user, std::uint32_t item, std::uint64_t count);
  std::uint32_t user;   ///< the lowest one; and of this user
  std::uint32_t item;   ///< the lowest one
  std::uint64_t count;  ///< ratings beyond the first of their user and item, in all
};

/// Names a rating whose value the rules make no float: by numbers, as DuplicateError.
class ValueError : public Error {
 public:
  ValueError(std::uint32_t user, std::uint32_t item, std::string reason);
  std::uint32_t user;
  std::uint32_t item;
  std::string reason;
};

/// Applies the rules for single users to all of `store`, which is emptied, and appends the steps that were
/// asked for. Rows have the form that is asked for, and times where they have positions or `keeps_times`.
/// They are kept in memory unless `store` was spilled, which it is where they do not fit. Throws
/// DuplicateError, ValueError, cannot_write, and bad_data for 2^32 ratings that are all kept.
[[nodiscard]] CleanRows clean_rows(RatingStore& store, const RatingRules& rules, RowForm form,
                                   bool keeps_times, std::vector<PackStep>& steps);

/// Which users and items are left: 1 or 0 for each.
struct LiveRatings {
  std::vector<std::uint8_t> users;
  std::vector<std::uint8_t> items;
};

/// Leaves the items of `frozen` and `unseen`, by number (those that the input has not are ignored), and
/// appends the step "reuse-ids".
void keep_known_items(const CleanRows& rows, std::span<const std::uint32_t> frozen,
                      std::span<const std::uint32_t> unseen, LiveRatings& live, std::vector<PackStep>& steps);

/// Counts the live ratings of each item.
[[nodiscard]] std::vector<std::uint32_t> count_live_items(const CleanRows& rows, LiveRatings& live);

/// Applies min_user and min_item and appends their steps; drops users without ratings of live items in any
/// case.
void keep_frequent(const CleanRows& rows, const RatingRules& rules, LiveRatings& live,
                   std::vector<PackStep>& steps);

}  // namespace chunkhit
