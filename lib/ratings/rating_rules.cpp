#include "ratings/rating_rules.h"

#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <numeric>

#include "base/memory_budget.h"
#include "base/text.h"
#include "base/throw_error.h"
#include "base/words.h"
#include "types/rating_block.h"

namespace chunkhit {
namespace {

constexpr std::size_t index_of(RowStep step) { return static_cast<std::size_t>(step); }

/// Applies the rules to one bucket in place; the ratings that are kept move to the front.
class BucketRules {
 public:
  BucketRules(const RatingRules& rules, RatingRows& rows, ItemSteps& items)
      : rules_(rules), rows_(rows), items_(items) {}

  RowStepCounts run() {
    for (std::size_t row = 0; row < rows_.row_count(); ++row) {
      const std::uint64_t begin = begin_of_row_;
      begin_of_row_ = rows_.indptr[row + 1];
      run_row(row, begin, begin_of_row_);
      rows_.indptr[row + 1] = kept_;
    }
    if (rules_.binarize) rows_.values = {};
    cut(rows_.items);
    cut(rows_.values);
    cut(rows_.times);
    cut(rows_.positions);
    return counts_;
  }

 private:
  /// The items of a row are ascending, so that all ratings of one item by the user are next to each other.
  void run_row(std::size_t row, std::uint64_t begin, std::uint64_t end) {
    if (keeps_all(begin, end)) return keep_row(begin, end);
    std::size_t steps_of_row = 0;  // number of steps after which the user still has ratings
    while (begin < end) {
      std::uint64_t next = begin + 1;
      while (next < end && rows_.items[next] == rows_.items[begin]) ++next;
      const RowStep last = run_pair(row, begin, next);
      items_.mark(rows_.items[begin], last);
      steps_of_row = std::max(steps_of_row, index_of(last) + 1);
      begin = next;
    }
    for (std::size_t step = 0; step < steps_of_row; ++step) ++counts_.users[step];
  }

  /// Returns whether no rule changes the row, which holds for most rows of most inputs.
  [[nodiscard]] bool keeps_all(std::uint64_t begin, std::uint64_t end) const {
    if (rules_.above) return false;
    bool keeps = true;
    for (std::uint64_t at = begin + 1; at < end; ++at) keeps &= rows_.items[at] != rows_.items[at - 1];
    if (!rows_.values.empty())
      for (std::uint64_t at = begin; at < end; ++at)
        keeps &= std::abs(rows_.values[at]) <= std::numeric_limits<float>::max() && rows_.values[at] != 0;
    return keeps;
  }

  /// Counts and keeps a row that no rule changes.
  void keep_row(std::uint64_t begin, std::uint64_t end) {
    for (std::size_t step = 0; step < kRowSteps; ++step) {
      counts_.ratings[step] += end - begin;
      counts_.users[step] += end > begin ? 1 : 0;
    }
    for (std::uint64_t at = begin; at < end; ++at) items_.mark(rows_.items[at], RowStep::above);
    if (begin != kept_)
      for (std::uint64_t at = begin; at < end; ++at) move(at, kept_ + (at - begin));
    kept_ += end - begin;
  }

  /// Applies the rules to all ratings [begin, end) of one item by one user, and keeps what they leave.
  /// Returns the last step after which a rating was left.
  RowStep run_pair(std::size_t row, std::uint64_t begin, std::uint64_t end) {
    counts_.ratings[index_of(RowStep::input)] += end - begin;
    if (!rows_.values.empty()) end = drop_zeros(row, begin, end);
    if (begin == end) return RowStep::input;
    counts_.ratings[index_of(RowStep::zeros)] += end - begin;
    if (end - begin > 1 && rules_.duplicates == Duplicates::keep) {
      sort_by_time(begin, end);
    } else if (end - begin > 1) {
      merge(row, begin, end);
      end = begin + 1;
    }
    counts_.ratings[index_of(RowStep::duplicates)] += end - begin;
    return keep_above(begin, end) ? RowStep::above : RowStep::duplicates;
  }

  /// Keeps those of the ratings [begin, end) that are above the bound; returns whether there are any.
  bool keep_above(std::uint64_t begin, std::uint64_t end) {
    const std::uint64_t kept_before = kept_;
    for (std::uint64_t at = begin; at < end; ++at) {
      const float value = rows_.values.empty() ? 1.0F : rows_.values[at];
      if (!rules_.above || value > *rules_.above) keep(at);
    }
    counts_.ratings[index_of(RowStep::above)] += kept_ - kept_before;
    return kept_ != kept_before;
  }

  /// Sorts the ratings of one item by one user by time; equal ones stay in the order of the input.
  void sort_by_time(std::uint64_t begin, std::uint64_t end) {
    order_.resize(end - begin);
    std::iota(order_.begin(), order_.end(), begin);
    if (rows_.times.empty()) return;
    std::ranges::stable_sort(order_, {}, [&](std::uint64_t at) { return rows_.times[at]; });
    reorder(rows_.values, begin);
    reorder(rows_.times, begin);
    reorder(rows_.positions, begin);
  }

  template <class Numbers>
  void reorder(Numbers& numbers, std::uint64_t begin) const {
    if (numbers.empty()) return;
    Numbers before;
    for (const std::uint64_t at : order_) before.push_back(numbers[at]);
    std::ranges::copy(before, numbers.begin() + static_cast<std::ptrdiff_t>(begin));
  }

  /// Moves the nonzero ratings of a pair to the front; returns their end.
  std::uint64_t drop_zeros(std::size_t row, std::uint64_t begin, std::uint64_t end) {
    std::uint64_t to = begin;
    for (std::uint64_t at = begin; at < end; ++at) {
      check_finite(row, rows_.items[begin], rows_.values[at]);
      if (rows_.values[at] == 0 && rules_.zeros == Zeros::drop) continue;
      if (at != to) move(at, to);
      ++to;
    }
    return to;
  }

  /// Replaces several ratings of one item by one, as `duplicates` asks.
  void merge(std::size_t row, std::uint64_t begin, std::uint64_t end) {
    const std::uint32_t user = rows_.first_user + static_cast<std::uint32_t>(row);
    if (!counts_.first_duplicate) counts_.first_duplicate = {user, rows_.items[begin]};
    std::uint64_t chosen = begin;
    for (std::uint64_t at = begin + 1; at < end; ++at)
      if (replaces(at, chosen)) chosen = at;
    // Summed in double; a sum that no 32-bit float is equal to is an error unless values are rounded.
    double sum = 0;
    if (rules_.duplicates == Duplicates::sum)
      for (std::uint64_t at = begin; at < end; ++at) sum += rows_.values.empty() ? 1 : rows_.values[at];
    move(chosen, begin);
    if (rules_.duplicates == Duplicates::sum && !rules_.rounds_values() &&
        is_lost(sum, static_cast<float>(sum)))
      refuse_sum(row, rows_.items[begin], sum);
    if (rules_.duplicates == Duplicates::sum) set_value(row, begin, static_cast<float>(sum));
  }

  /// Whether a later rating is kept instead of the one chosen so far.
  [[nodiscard]] bool replaces(std::uint64_t later, std::uint64_t chosen) const {
    switch (rules_.duplicates) {
      case Duplicates::sum:
      case Duplicates::last:
        return rows_.times.empty() || rows_.times[later] >= rows_.times[chosen];
      case Duplicates::max:
        return !rows_.values.empty() && rows_.values[later] > rows_.values[chosen];
      case Duplicates::first:
        return !rows_.times.empty() && rows_.times[later] < rows_.times[chosen];
      case Duplicates::error:
      case Duplicates::keep:
        break;
    }
    return false;
  }

  /// Values may be implicit (all 1) so far; a sum makes them explicit.
  void set_value(std::size_t row, std::uint64_t at, float value) {
    check_finite(row, rows_.items[at], value);
    if (rows_.values.empty()) rows_.values.assign(rows_.nnz(), 1.0F);
    rows_.values[at] = value;
  }

  void check_finite(std::size_t row, std::uint32_t item, float value) const {
    if (!std::isfinite(value)) refuse(row, item, value);
  }

  [[noreturn]] void refuse(std::size_t row, std::uint32_t item, float value) const {
    throw ValueError(user_of(row), item, "expected a finite value, found " + std::to_string(value));
  }

  [[noreturn]] void refuse_sum(std::size_t row, std::uint32_t item, double sum) const {
    throw ValueError(user_of(row), item,
                     "the sum " + number_text(sum) + " is no 32-bit float; `values` f32 takes the nearest");
  }

  [[nodiscard]] std::uint32_t user_of(std::size_t row) const {
    return static_cast<std::uint32_t>(rows_.first_user + row);
  }

  void move(std::uint64_t from, std::uint64_t to) {
    rows_.items[to] = rows_.items[from];
    if (!rows_.values.empty()) rows_.values[to] = rows_.values[from];
    if (!rows_.times.empty()) rows_.times[to] = rows_.times[from];
    if (!rows_.positions.empty()) rows_.positions[to] = rows_.positions[from];
  }

  /// Truncates to the kept ratings; frees the rest if it is more than a quarter of the array.
  template <class Numbers>
  void cut(Numbers& all) const {
    if (all.empty()) return;
    all.resize(kept_);
    if (kept_ < all.capacity() / 4 * 3) all.shrink_to_fit();
  }

  void keep(std::uint64_t at) {
    if (at != kept_) move(at, kept_);
    ++kept_;
  }

  const RatingRules& rules_;
  RatingRows& rows_;
  ItemSteps& items_;
  std::uint64_t begin_of_row_ = 0;
  std::uint64_t kept_ = 0;
  std::vector<std::uint64_t> order_;  // of the ratings of one item by one user
  RowStepCounts counts_;
};

}  // namespace

void RowStepCounts::add(const RowStepCounts& other) {
  for (std::size_t step = 0; step < kRowSteps; ++step) {
    users[step] += other.users[step];
    ratings[step] += other.ratings[step];
  }
  if (!other.first_duplicate) return;
  first_duplicate =
      first_duplicate ? std::min(*first_duplicate, *other.first_duplicate) : *other.first_duplicate;
}

/// An atomic maximum: several threads may mark the same item.
void ItemSteps::mark(std::uint32_t item, RowStep step) {
  const auto reached = static_cast<std::uint8_t>(index_of(step) + 1);
  std::uint8_t known = last_[item].load(std::memory_order_relaxed);
  while (known < reached && !last_[item].compare_exchange_weak(known, reached, std::memory_order_relaxed)) {
  }
}

std::array<std::uint64_t, kRowSteps> ItemSteps::counts() const {
  std::array<std::uint64_t, kRowSteps> counts{};
  for (const auto& last : last_)
    for (std::size_t step = 0; step < last.load(std::memory_order_relaxed); ++step) ++counts[step];
  return counts;
}

RowStepCounts apply_rules(const RatingRules& rules, RatingRows& rows, ItemSteps& items) {
  return BucketRules(rules, rows, items).run();
}

namespace {

std::uint64_t count_used(const std::vector<std::uint32_t>& counts) {
  return static_cast<std::uint64_t>(
      std::count_if(counts.begin(), counts.end(), [](std::uint32_t count) { return count > 0; }));
}

/// Lists the counts of the rules that were given; rules without effect on the run have no line in the report.
std::vector<PackStep> steps_asked_for(const RatingRules& rules, const RowStepCounts& counts,
                                      const ItemSteps& items) {
  const std::array<bool, kRowSteps> asked{true, rules.zeros == Zeros::drop, true, rules.above.has_value()};
  const std::array<std::uint64_t, kRowSteps> item_counts = items.counts();
  std::vector<PackStep> steps;
  for (std::size_t step = 0; step < kRowSteps; ++step)
    if (asked[step])
      steps.push_back({std::string(kEnumWords<RowStep>[step]), counts.users[step], item_counts[step],
                       counts.ratings[step]});
  if (rules.binarize) steps.push_back({"binarize", counts.users[3], item_counts[3], counts.ratings[3]});
  return steps;
}

/// Ratings of live items by live users.
struct LiveCounts {
  std::uint64_t users_before = 0;  ///< with at least one, before users with too few were dropped
  std::uint64_t ratings_before = 0;
  std::uint64_t users = 0;
  std::uint64_t ratings = 0;
  std::vector<std::uint32_t> items;
};

std::uint32_t count_live(const RatingRow& row, const LiveRatings& live) {
  std::uint32_t count = 0;
  for (const std::uint32_t item : row.items) count += live.items[item];
  return count;
}

/// Drops users of one bucket and counts what is left; adds the ratings per item to `items`.
LiveCounts drop_users(const RatingRows& bucket, std::uint64_t min_user, LiveRatings& live,
                      std::vector<std::uint32_t>& items) {
  LiveCounts counts;
  for (std::size_t index = 0; index < bucket.row_count(); ++index) {
    const RatingRow row = bucket.row(index);
    const std::uint32_t count = live.users[row.user] != 0 ? count_live(row, live) : 0;
    counts.users_before += count > 0 ? 1 : 0;
    counts.ratings_before += count;
    live.users[row.user] = count > 0 && count >= min_user ? 1 : 0;
    if (live.users[row.user] == 0) continue;
    ++counts.users;
    counts.ratings += count;
    for (const std::uint32_t item : row.items) items[item] += live.items[item];
  }
  return counts;
}

/// Drops live users with fewer than `min_user` ratings of live items, or none, and counts.
LiveCounts drop_users(const CleanRows& rows, std::uint64_t min_user, LiveRatings& live) {
  ItemCounter items(live.items.size());
  LiveCounts all;
  std::mutex all_mutex;
  rows.for_each_bucket([&](const RatingRows& bucket) {
    const LiveCounts counts = drop_users(bucket, min_user, live, items.local());
    const std::lock_guard lock(all_mutex);
    all.users_before += counts.users_before;
    all.ratings_before += counts.ratings_before;
    all.users += counts.users;
    all.ratings += counts.ratings;
  });
  all.items = items.sum();
  return all;
}

/// Drops users without ratings of live items.
void drop_empty_users(const CleanRows& rows, LiveRatings& live) {
  rows.for_each_bucket([&](const RatingRows& bucket) {
    for (std::size_t index = 0; index < bucket.row_count(); ++index) {
      const RatingRow row = bucket.row(index);
      const auto is_live = [&](std::uint32_t item) { return live.items[item] != 0; };
      if (std::none_of(row.items.begin(), row.items.end(), is_live)) live.users[row.user] = 0;
    }
  });
}

/// Drops items that have ratings, but fewer than `min_item`; returns whether there were any.
bool drop_items(const std::vector<std::uint32_t>& counts, std::uint64_t min_item, LiveRatings& live) {
  bool dropped = false;
  for (std::size_t item = 0; item < counts.size(); ++item) {
    if (live.items[item] == 0 || counts[item] == 0 || counts[item] >= min_item) continue;
    live.items[item] = 0;
    dropped = true;
  }
  return dropped;
}

/// Drops users and items until all that are left have enough ratings: the k-core of the bipartite graph. It
/// is unique, so the order of dropping does not matter.
void filter_to_fixed_point(const CleanRows& rows, const RatingRules& rules, LiveRatings& live,
                           std::vector<PackStep>& steps) {
  LiveCounts left = drop_users(rows, rules.min_user, live);
  while (drop_items(left.items, rules.min_item, live)) left = drop_users(rows, rules.min_user, live);
  std::string name = rules.min_item > 0 ? "min-item" : "";
  if (rules.min_user > 0) name += name.empty() ? "min-user" : " and min-user";
  steps.push_back({name, left.users, count_used(left.items), left.ratings});
}

}  // namespace

DuplicateError::DuplicateError(std::uint32_t user_number, std::uint32_t item_number, std::uint64_t more)
    : Error(ErrorCode::bad_data, "user number " + std::to_string(user_number) +
                                     " has several ratings of item number " + std::to_string(item_number) +
                                     "; in all " + count_text(more, "rating") + " too many"),
      user(user_number),
      item(item_number),
      count(more) {}

ValueError::ValueError(std::uint32_t user_number, std::uint32_t item_number, std::string what)
    : Error(ErrorCode::bad_data, "user number " + std::to_string(user_number) + ", item number " +
                                     std::to_string(item_number) + ": " + what),
      user(user_number),
      item(item_number),
      reason(std::move(what)) {}

/// Builds and cleans the rows bucket by bucket in parallel. The budget limits the memory of all buckets that
/// are in work; buckets of a spilled store are divided so that each thread keeps within its share.
CleanRows clean_rows(RatingStore& store, const RatingRules& rules, RowForm form, bool keeps_times,
                     std::vector<PackStep>& steps) {
  if (rules.duplicates == Duplicates::keep && store.rating_count() > UINT32_MAX)
    throw_bad_data(
        "`duplicates` keep: " + std::to_string(store.rating_count()) +
        " ratings, at most 2^32 - 1 are packed at a time: pack parts of the users, and merge them");
  const std::uint64_t memory = store.spec().memory_bytes;
  if (!store.is_spilled() && !store.has_room_for_rows(form, keeps_times)) store.spill();
  CleanRows rows(store.bucket_count(), store.is_spilled() ? store.spec().folder : std::string(), memory);
  MemoryBudget work(memory);
  const std::uint64_t work_of_thread =
      store.is_spilled() ? memory / static_cast<std::uint64_t>(tbb::this_task_arena::max_concurrency())
                         : UINT64_MAX;
  ItemSteps items(store.item_count());
  RowStepCounts counts;
  std::mutex counts_mutex;
  const auto clean = [&](std::size_t bucket, std::uint32_t first, std::uint32_t end) {
    RatingRows made = store.rows(first, end, form);
    // The bucket's records are freed as soon as its rows exist: both together would double the memory.
    if (!store.is_spilled()) store.drop(bucket);
    const RowStepCounts made_counts = apply_rules(rules, made, items);
    if (form != RowForm::with_positions && !keeps_times) made.times = {};
    rows.put(bucket, std::move(made));
    const std::lock_guard lock(counts_mutex);
    counts.add(made_counts);
  };
  tbb::parallel_for(std::size_t{0}, store.bucket_count(), [&](std::size_t bucket) {
    const std::uint64_t bytes = store.ratings_in(bucket) * store.work_bytes_of_rating();
    const MemoryBudget::Share share(work, std::min({bytes, work_of_thread, work.total()}));
    const std::vector<std::uint32_t> cuts = store.cut_bucket(bucket, work_of_thread);
    for (std::size_t at = 0; at + 1 < cuts.size(); ++at) clean(bucket, cuts[at], cuts[at + 1]);
    store.drop(bucket);
  });
  if (rules.duplicates == Duplicates::error && counts.first_duplicate) {
    const auto [user, item] = *counts.first_duplicate;
    // counts.ratings[1] is after `zeros`, [2] after `duplicates`.
    throw DuplicateError(user, item, counts.ratings[1] - counts.ratings[2]);
  }
  for (PackStep& step : steps_asked_for(rules, counts, items)) steps.push_back(std::move(step));
  return rows;
}

/// Restricts the items to those of another pack (`reuse_ids`).
void keep_known_items(const CleanRows& rows, std::span<const std::uint32_t> frozen,
                      std::span<const std::uint32_t> unseen, LiveRatings& live,
                      std::vector<PackStep>& steps) {
  std::fill(live.items.begin(), live.items.end(), std::uint8_t{0});
  for (const std::span<const std::uint32_t> known : {frozen, unseen})
    for (const std::uint32_t item : known)
      if (item < live.items.size()) live.items[item] = 1;
  const LiveCounts left = drop_users(rows, 0, live);
  steps.push_back({"reuse-ids", left.users, count_used(left.items), left.ratings});
}

std::vector<std::uint32_t> count_live_items(const CleanRows& rows, LiveRatings& live) {
  return drop_users(rows, 0, live).items;
}

void keep_frequent(const CleanRows& rows, const RatingRules& rules, LiveRatings& live,
                   std::vector<PackStep>& steps) {
  if (rules.min_user == 0 && rules.min_item == 0)
    drop_empty_users(rows, live);
  else
    filter_to_fixed_point(rows, rules, live, steps);
}

}  // namespace chunkhit
