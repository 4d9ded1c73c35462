// Which ratings are for training, and which are held out; by functions of (seed, user, item), never a state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "chunkhit/sparse_spec.h"
#include "ratings/rating_rules.h"
#include "ratings/rating_store.h"
#include "types/enum_names.h"

namespace chunkhit {

/// Counts live ratings at or after a time.
[[nodiscard]] std::uint64_t count_since(const CleanRows& rows, const LiveRatings& live, std::int64_t time);

/// Gives a time that at most `count` live ratings are at or after, and as many as ratings of equal times,
/// which stay together, allow; nothing where none can be. Reads all rows up to four times.
[[nodiscard]] std::optional<std::int64_t> latest_time_split(const CleanRows& rows, const LiveRatings& live,
                                                            std::uint64_t count);

/// Throws usage, by the field's name, where a spec makes no sense.
void check_split(const RatingSplitSpec& spec);

/// The packs of a split, and what a user or a rating belongs to.
enum class Split : std::uint8_t { train, validation, test };
constexpr Words<3> words_of(Split) { return {"train", "validation", "test"}; }

/// What a split takes from elsewhere than the ratings that are left: by the users' numbers.
struct GivenSplit {
  std::vector<std::uint32_t> validation_users;  ///< users: those of the list
  std::vector<std::uint32_t> test_users;
  std::vector<std::uint32_t> train_counts;       ///< given: ratings of each user in the training files; may
                                                 ///< end before the last user
  std::vector<std::uint32_t> validation_counts;  ///< given: in the validation files
  std::vector<std::uint64_t> id_hashes;          ///< users_by_id: of each user's id
};

/// Users with fewer items than this are not asked for any of them (vae_cf).
inline constexpr std::size_t kMinItemsToFold = 5;

/// The latest time of all ratings, and how many have it.
struct LatestTime {
  std::int64_t time = 0;
  std::uint64_t count = 0;
};

/// Divides ratings. Several threads may ask.
class RatingSplit {
 public:
  /// Chooses the held-out users, or when the test begins. `ratings` are those that are live. Throws usage
  /// where a spec does not fit the ratings.
  RatingSplit(const RatingSplitSpec& spec, std::uint64_t seed, const CleanRows& rows, const LiveRatings& live,
              std::uint64_t ratings, bool has_times, GivenSplit given = {});
  /// Whether whole users belong to a split.
  [[nodiscard]] bool is_by_user() const { return spec_.is_by_user(); }
  /// Whether held-out users are chosen and divided by their ids, not by their numbers in the input.
  [[nodiscard]] bool is_by_id() const { return spec_.split_by == SplitKind::users_by_id; }
  /// Whether a user's ratings may belong to several splits.
  [[nodiscard]] bool divides_rows() const { return spec_.split_by != SplitKind::none && !is_by_user(); }
  /// The packs: train, and those that were asked for.
  [[nodiscard]] const std::vector<Split>& splits() const { return splits_; }
  /// Returns the split of each of a row's `entries` (indices into the row, of live ratings), for training or
  /// held out for it; with is_by_user the user's.
  void divide(const RatingRow& row, std::span<const std::uint32_t> entries, std::vector<Split>& splits) const;
  /// Whether the ratings of a split are given (X) in the pack of another: those for training are, in test
  /// also those for validation, unless they are hidden.
  [[nodiscard]] bool is_given(Split split, Split pack) const {
    return split == Split::train ||
           (!spec_.hide_validation && split == Split::validation && pack == Split::test);
  }
  [[nodiscard]] Split split_of(std::uint32_t user) const {
    return is_by_user() ? split_of_user_[user] : Split::train;
  }
  /// Returns which of a held-out user's items, all of which are columns, are asked for: 1, else 0. `items`
  /// are their numbers, with is_by_id their columns; ratings of one item are neighbours and stay together.
  void fold(std::uint32_t user, std::span<const std::uint32_t> items, std::vector<std::uint8_t>& asked) const;

  /// Found where a split by time gives test or validation no rating.
  [[nodiscard]] const std::optional<LatestTime>& latest() const { return latest_; }

 private:
  void choose_users(const LiveRatings& live);
  [[noreturn]] void refuse_too_many(std::uint64_t validation, std::uint64_t test,
                                    const LiveRatings& live) const;
  std::uint64_t assign_listed(const std::vector<std::uint32_t>& users, Split split, const LiveRatings& live);
  void choose_times(const CleanRows& rows, const LiveRatings& live, std::uint64_t ratings);
  void divide_row(const RatingRow& row, std::span<const std::uint32_t> entries,
                  std::vector<Split>& splits) const;
  void divide_given(const RatingRow& row, std::span<const std::uint32_t> entries,
                    std::vector<Split>& splits) const;

  RatingSplitSpec spec_;
  std::uint64_t seed_;
  GivenSplit given_;
  std::vector<Split> splits_;
  std::vector<Split> split_of_user_;
  std::optional<std::int64_t> validation_since_;
  std::optional<std::int64_t> test_since_;
  std::optional<LatestTime> latest_;
};

}  // namespace chunkhit
