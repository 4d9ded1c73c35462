#include "pack/rating_steps.h"

#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <utility>

#include "base/words.h"
#include "pack/item_counter.h"
#include "pack/memory_budget.h"

namespace chunkhit {
namespace {

std::uint64_t count_used(const std::vector<std::uint32_t>& counts) {
  return static_cast<std::uint64_t>(
      std::count_if(counts.begin(), counts.end(), [](std::uint32_t count) { return count > 0; }));
}

std::vector<StepCounts> steps_asked_for(const RatingRules& rules, const RowStepCounts& counts,
                                        const ItemSteps& items) {
  const std::array<bool, kRowSteps> asked{true, rules.zeros == Zeros::drop, true, rules.min_value.has_value(),
                                          rules.above.has_value()};
  const std::array<std::uint64_t, kRowSteps> item_counts = items.counts();
  std::vector<StepCounts> steps;
  for (std::size_t step = 0; step < kRowSteps; ++step)
    if (asked[step])
      steps.push_back(
          {std::string(kRowStepNames[step]), counts.users[step], item_counts[step], counts.ratings[step]});
  if (rules.binarize) steps.push_back({"binarize", counts.users[4], item_counts[4], counts.ratings[4]});
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

/// Drops users of one bucket and counts; their items into `items`.
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
LiveCounts drop_users(const RowStore& rows, std::uint64_t min_user, LiveRatings& live) {
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
void drop_empty_users(const RowStore& rows, LiveRatings& live) {
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

/// Items with too few ratings of all users, then users with too few ratings of those items: as vae_cf.
void filter_once(const RowStore& rows, const RatingRules& rules, LiveRatings& live,
                 std::vector<StepCounts>& steps) {
  std::uint64_t items_left = 0;
  if (rules.min_item > 0) {
    const LiveCounts all = drop_users(rows, 0, live);
    drop_items(all.items, rules.min_item, live);
    for (std::size_t item = 0; item < all.items.size(); ++item)
      items_left += all.items[item] > 0 ? live.items[item] : 0;
  }
  const LiveCounts left = drop_users(rows, rules.min_user, live);
  if (rules.min_item > 0) steps.push_back({"min-item", left.users_before, items_left, left.ratings_before});
  if (rules.min_user > 0) steps.push_back({"min-user", left.users, count_used(left.items), left.ratings});
}

/// Until every user and every item that is left has enough. The order of dropping does not matter for what
/// is left in the end.
void filter_to_fixed_point(const RowStore& rows, const RatingRules& rules, LiveRatings& live,
                           std::vector<StepCounts>& steps) {
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

RowStore clean_rows(RatingStore& store, const RatingRules& rules, RowForm form,
                    std::vector<StepCounts>& steps) {
  const std::uint64_t memory = store.spec().memory_bytes;
  RowStore rows(store.bucket_count(), store.is_spilled() ? store.spec().folder : std::string(), memory);
  MemoryBudget work(memory);
  const std::uint64_t work_of_thread =
      store.is_spilled() ? memory / static_cast<std::uint64_t>(tbb::this_task_arena::max_concurrency())
                         : UINT64_MAX;
  ItemSteps items(store.item_count());
  RowStepCounts counts;
  std::mutex counts_mutex;
  const auto clean = [&](std::size_t bucket, std::uint32_t first, std::uint32_t end) {
    RatingRows made = store.rows(first, end, form);
    if (!store.is_spilled()) store.drop(bucket);
    const RowStepCounts made_counts = apply_rules(rules, made, items);
    if (form != RowForm::with_places) made.times = {};
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
    throw DuplicateError(user, item, counts.ratings[1] - counts.ratings[2]);
  }
  for (StepCounts& step : steps_asked_for(rules, counts, items)) steps.push_back(std::move(step));
  return rows;
}

void keep_known_items(const RowStore& rows, std::span<const std::uint32_t> frozen, LiveRatings& live,
                      std::vector<StepCounts>& steps) {
  std::fill(live.items.begin(), live.items.end(), std::uint8_t{0});
  for (const std::uint32_t item : frozen)
    if (item < live.items.size()) live.items[item] = 1;
  const LiveCounts left = drop_users(rows, 0, live);
  steps.push_back({"reuse-ids", left.users, count_used(left.items), left.ratings});
}

void keep_frequent(const RowStore& rows, const RatingRules& rules, LiveRatings& live,
                   std::vector<StepCounts>& steps) {
  if (rules.min_user == 0 && rules.min_item == 0)
    drop_empty_users(rows, live);
  else if (rules.filter_once)
    filter_once(rows, rules, live, steps);
  else
    filter_to_fixed_point(rows, rules, live, steps);
}

}  // namespace chunkhit
