#include "ratings/rating_packs.h"

#include <oneapi/tbb/enumerable_thread_specific.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <mutex>
#include <string>
#include <utility>

#include "base/random.h"
#include "base/text.h"
#include "base/throw_error.h"
#include "base/words.h"
#include "chunkhit/error.h"
#include "ratings/stored_values.h"
#include "types/enum_names.h"

namespace chunkhit {
namespace {

constexpr std::uint32_t kMantissaBits = 23;
constexpr double kMaxStored = 65'535;

/// Returns the bounds of the values with this sign and exponent: a range is the upper 9 bits of a float.
ValueHistogram::Bin range_of(std::uint32_t range, std::uint64_t count) {
  const std::uint32_t exponent = range & 255;
  const float near = std::bit_cast<float>(exponent << kMantissaBits);
  const float far = std::bit_cast<float>((exponent + 1) << kMantissaBits);
  return range < 256 ? ValueHistogram::Bin{near, far, count} : ValueHistogram::Bin{-far, -near, count};
}

}  // namespace

/// A scale fits while every value is exactly number · scale for a whole number from 0 to 65535.
void ValueFit::add(float value) {
  all_one_ = all_one_ && value == 1;
  for (std::size_t at = 0; at < kScales.size(); ++at) {
    Scale& scale = scales_[at];
    if (!scale.fits) continue;
    const double number = std::round(static_cast<double>(value) / kScales[at]);
    scale.fits = number >= 0 && number <= kMaxStored && static_cast<float>(number * kScales[at]) == value;
    if (scale.fits) scale.largest = std::max(scale.largest, static_cast<std::uint64_t>(number));
  }
}

void ValueFit::add(const ValueFit& other) {
  all_one_ = all_one_ && other.all_one_;
  for (std::size_t at = 0; at < kScales.size(); ++at) {
    scales_[at].fits = scales_[at].fits && other.scales_[at].fits;
    scales_[at].largest = std::max(scales_[at].largest, other.scales_[at].largest);
  }
}

StoredValues ValueFit::stored() const {
  if (all_one_) return {ValueType::none, 1};
  for (std::size_t at = 0; at < kScales.size(); ++at)
    if (scales_[at].fits) return {scales_[at].largest < 256 ? ValueType::u8 : ValueType::u16, kScales[at]};
  return {ValueType::f32, 1};
}

/// Counts by open addressing with linear probing; the table always has free slots, because kMaxDistinctValues
/// is far below its size.
void ValueStats::add_other(float value, std::uint64_t count) {
  if (slots_.empty()) {
    fit_.add(value);
    add_range(value, count);
    return;
  }
  std::size_t at = slot_of(value);
  while (slots_[at].count > 0 && slots_[at].value != value) at = (at + 1) % kSlots;
  if (slots_[at].count == 0) {
    fit_.add(value);
    slots_[at].value = value;
    ++distinct_;
  }
  slots_[at].count += count;
  if (distinct_ > kMaxDistinctValues) change_to_ranges();
}

void ValueStats::add(const ValueStats& other) {
  for (const Slot& slot : other.slots_)
    if (slot.count > 0) add(slot.value, slot.count);
  if (!other.slots_.empty()) return;
  if (!slots_.empty()) change_to_ranges();
  for (std::size_t range = 0; range < kRanges; ++range) ranges_[range] += other.ranges_[range];
  fit_.add(other.fit_);
}

/// A negative range does not hold its lower end.
void ValueStats::add_from_range(float low, std::uint64_t count) {
  if (!slots_.empty()) change_to_ranges();
  add_range(std::nextafter(low, std::numeric_limits<float>::infinity()), count);
}

/// Lists the bins by value, whatever order the hash table has them in.
ValueHistogram ValueStats::histogram() const {
  ValueHistogram histogram;
  histogram.has_ranges = slots_.empty();
  for (const Slot& slot : slots_)
    if (slot.count > 0) histogram.bins.push_back({slot.value, slot.value, slot.count});
  for (std::uint32_t range = 0; range < ranges_.size(); ++range)
    if (ranges_[range] > 0) histogram.bins.push_back(range_of(range, ranges_[range]));
  std::sort(histogram.bins.begin(), histogram.bins.end(),
            [](const auto& a, const auto& b) { return a.low < b.low; });
  return histogram;
}

void ValueStats::add_range(float value, std::uint64_t count) {
  ranges_[std::bit_cast<std::uint32_t>(value) >> kMantissaBits] += count;
}

/// Too many distinct values for a table: their counts move to the ranges, and the table is freed.
void ValueStats::change_to_ranges() {
  ranges_.resize(kRanges);
  for (const Slot& slot : slots_)
    if (slot.count > 0) add_range(slot.value, slot.count);
  slots_ = {};
}

namespace {

/// The first rating that a type of values cannot hold.
struct Misfit {
  std::uint32_t user = UINT32_MAX;  ///< the lowest one; UINT32_MAX: there is none
  std::uint32_t item = 0;
  float rating = 0;
  void add(const Misfit& other) {
    if (other.user < user) *this = other;
  }
};

/// Statistics of all live ratings.
struct TrainingStats {
  std::vector<std::uint32_t> item_counts;  ///< of ratings for training
  ValueStats values;
};

/// Counts one row: its live items in the training split, and the values of all its live ratings.
class RowScan {
 public:
  RowScan(const LiveRatings& live, const RatingSplit& split) : live_(live), split_(split) {}
  void look(const RatingRow& row, std::vector<std::uint32_t>& item_counts, ValueStats& values) {
    list_live(row, live_, entries_);
    count(row, item_counts);
    if (!row.values.empty())
      for (const std::uint32_t entry : entries_) values.add(row.values[entry]);
    else if (!entries_.empty())
      values.add(1, entries_.size());
  }
  /// Finds what `type` cannot hold in the row that was looked at last.
  [[nodiscard]] Misfit misfit(const RatingRow& row, const StoredValues& type) const {
    for (const std::uint32_t entry : entries_) {
      const float value = row.values.empty() ? 1.0F : row.values[entry];
      if (!holds(type, value)) return {row.user, row.items[entry], value};
    }
    return {};
  }

 private:
  void count(const RatingRow& row, std::vector<std::uint32_t>& item_counts) {
    if (split_.divides_rows()) {
      split_.divide(row, entries_, splits_);
      for (std::size_t at = 0; at < entries_.size(); ++at)
        item_counts[row.items[entries_[at]]] += splits_[at] == Split::train ? 1 : 0;
    } else if (split_.split_of(row.user) == Split::train) {
      for (const std::uint32_t entry : entries_) ++item_counts[row.items[entry]];
    }
  }

  const LiveRatings& live_;
  const RatingSplit& split_;
  std::vector<std::uint32_t> entries_;
  std::vector<Split> splits_;
};

/// Scans all ratings; throws MisfitError where `type` is given and cannot hold one of them.
TrainingStats scan_ratings(const CleanRows& rows, const LiveRatings& live, const RatingSplit& split,
                           const std::optional<StoredValues>& type) {
  ItemCounter counter(live.items.size());
  tbb::enumerable_thread_specific<ValueStats> values;
  tbb::enumerable_thread_specific<Misfit> misfits;
  rows.for_each_bucket([&](const RatingRows& bucket) {
    std::vector<std::uint32_t>& counts = counter.local();
    ValueStats& local = values.local();
    RowScan look(live, split);
    Misfit& misfit = misfits.local();
    for (std::size_t index = 0; index < bucket.row_count(); ++index) {
      const RatingRow row = bucket.row(index);
      look.look(row, counts, local);
      if (type) misfit.add(look.misfit(row, *type));
    }
  });
  Misfit first;
  for (const Misfit& misfit : misfits) first.add(misfit);
  if (first.user != UINT32_MAX) throw MisfitError(first.user, first.item, first.rating);
  TrainingStats stats{counter.sum(), {}};
  for (const ValueStats& local : values) stats.values.add(local);
  return stats;
}

void add_matrix(std::uint64_t nnz, MatrixStats& stats) {
  stats.nnz += nnz;
  stats.longest_row = std::max(stats.longest_row, nnz);
}

void add_stats(const PackStats& from, PackStats& to) {
  to.x.nnz += from.x.nnz;
  to.x.longest_row = std::max(to.x.longest_row, from.x.longest_row);
  to.held_out.nnz += from.held_out.nnz;
  to.held_out.longest_row = std::max(to.held_out.longest_row, from.held_out.longest_row);
  to.unseen_ratings += from.unseen_ratings;
  to.users_left_out += from.users_left_out;
  to.ratings_left_out += from.ratings_left_out;
}

/// Counts one bucket for one pack; sets `is_in` to 1 for each user of the pack.
PackStats scan_users(const RatingRows& bucket, Split split, bool is_by_user, UserRows& rows,
                     std::vector<std::uint8_t>& is_in) {
  PackStats stats;
  for (std::size_t index = 0; index < bucket.row_count(); ++index) {
    const RatingRow row = bucket.row(index);
    rows.make(row, split);
    stats.unseen_ratings += rows.unseen();
    is_in[row.user] = rows.is_in_pack() ? 1 : 0;
    if (!rows.is_in_pack()) {
      stats.users_left_out += rows.is_concerned() ? 1 : 0;
      // X of a user who is held out as a whole is the split's, too.
      const bool is_lost = rows.is_concerned() && split != Split::train;
      if (is_lost) stats.ratings_left_out += rows.held_out().size();
      if (is_lost && is_by_user) stats.ratings_left_out += rows.x().size();
      continue;
    }
    add_matrix(rows.x().size(), stats.x);
    add_matrix(rows.held_out().size(), stats.held_out);
  }
  return stats;
}

/// Does the same without a split: every live rating is for training, and no row needs to be made.
PackStats scan_whole_users(const RatingRows& bucket, const UserRows& rows, std::vector<std::uint8_t>& is_in) {
  PackStats stats;
  for (std::size_t index = 0; index < bucket.row_count(); ++index) {
    const RatingRow row = bucket.row(index);
    const std::uint64_t count = rows.count_whole(row);
    is_in[row.user] = count > 0 ? 1 : 0;
    if (count > 0) add_matrix(count, stats.x);
  }
  return stats;
}

/// Finds the users of a pack, and their order if rows are shuffled.
PackUsers find_users(const RowSource& source, const RatingPacksSpec& spec, Split split) {
  PackUsers found;
  found.split = split;
  if (spec.split.split_by != SplitKind::none) found.name = name_of(split);
  std::vector<std::uint8_t> is_in(source.live.users.size());
  std::mutex stats_mutex;
  source.rows.for_each_bucket([&](const RatingRows& bucket) {
    UserRows rows(source);
    const PackStats stats = spec.split.split_by == SplitKind::none
                                ? scan_whole_users(bucket, rows, is_in)
                                : scan_users(bucket, split, spec.split.is_by_user(), rows, is_in);
    const std::lock_guard lock(stats_mutex);
    add_stats(stats, found.stats);
  });
  for (std::size_t user = 0; user < is_in.size(); ++user)
    if (is_in[user] != 0) found.users.push_back(static_cast<std::uint32_t>(user));
  if (spec.order == PackOrder::shuffle) shuffle(std::span(found.users), spec.seed, Purpose::pack_order);
  return found;
}

/// Returns the cheapest form of rows that the split can work with; kept times need the input's order.
RowForm row_form(const RatingSplitSpec& split, bool keeps_times) {
  const bool is_by_input = split.split_by == SplitKind::given || split.resolved_order() == SplitOrder::input;
  if (split.split_by == SplitKind::none)
    return keeps_times ? RowForm::came_with_positions : RowForm::as_they_came;
  return split.is_by_time() || is_by_input || keeps_times ? RowForm::with_positions : RowForm::ascending;
}

/// Removes dropped items from the columns. With `reuse_ids` their columns stay and are empty.
void leave_out_dropped(const LiveRatings& live, ItemColumns& columns) {
  for (std::size_t item = 0; item < columns.columns.size(); ++item)
    if (live.items[item] == 0) columns.columns[item] = kNoColumn;
}

/// Lists the items with ratings, all of which are held out.
std::vector<std::uint32_t> unseen_items(const CleanRows& rows, LiveRatings& live,
                                        const ItemColumns& columns) {
  const std::vector<std::uint32_t> counts = count_live_items(rows, live);
  std::vector<std::uint32_t> items;
  for (std::uint32_t item = 0; item < counts.size(); ++item)
    if (counts[item] > 0 && columns.columns[item] == kNoColumn) items.push_back(item);
  return items;
}

/// Throws bad_data with what each rule left, the one that removed everything first.
[[noreturn]] void throw_nothing_left(const RatingRules& rules, const std::vector<PackStep>& steps) {
  std::string text = "no ratings are left for training";
  const auto empty = std::ranges::find(steps, 0U, &PackStep::ratings);
  if (empty != steps.end() && empty != steps.begin()) {
    const bool is_above = empty->name == "above" && rules.above;
    text = (is_above ? "`above` " + number_text(*rules.above) : empty->name) + " leaves 0 of " +
           count_text(std::prev(empty)->ratings, "rating") +
           (is_above ? " (those without values are 1)" : "") + ": " + text;
  }
  for (const PackStep& step : steps) text += "; " + step.name + ": " + count_text(step.ratings);
  throw_bad_data(text);
}

bool has_ratings(const ItemColumns& columns) {
  return std::ranges::any_of(columns.counts, [](std::uint64_t count) { return count > 0; });
}

/// Whether the input may be one of several, which the rules leave nothing: one that is counted, or that has
/// items of the others.
bool may_be_a_part(const ItemChoice& items, const RatingRules& rules, std::uint64_t known_ratings) {
  if (items.lists_unseen) return rules.min_item == 0;  // which a count of a part leaves out
  return items.frozen && known_ratings > 0;
}

}  // namespace

RatingPacksSpec vae_cf_spec() {
  RatingPacksSpec spec;
  spec.rules.above = 3.5F;
  spec.rules.binarize = true;
  spec.rules.min_user = 5;
  spec.split.split_by = SplitKind::users;
  spec.split.validation.count = 10'000;
  spec.split.test.count = 10'000;
  spec.split.fold_in = 0.8;
  return spec;
}

MisfitError::MisfitError(std::uint32_t user_number, std::uint32_t item_number, float found)
    : Error(ErrorCode::bad_data, "user number " + std::to_string(user_number) + ", item number " +
                                     std::to_string(item_number) + ": `values` cannot hold " +
                                     number_text(found)),
      user(user_number),
      item(item_number),
      rating(found) {}

/// `sum` keeps the time of the latest of the summed ratings.
bool needs_times(const RatingPacksSpec& spec) {
  const Duplicates duplicates = spec.rules.duplicates;
  return spec.keep_times || spec.split.is_by_time() || duplicates == Duplicates::last ||
         duplicates == Duplicates::first || duplicates == Duplicates::sum;
}

/// Steps: clean the rows, drop rare users and items, split, scan the training ratings, number the columns,
/// and find the users of each pack.
RatingPacks make_rating_packs(RatingStore& store, const RatingPacksSpec& spec, const ItemChoice& items,
                              GivenSplit given, std::int64_t time_scale) {
  check_split(spec.split);
  if (spec.keep_times && !store.has_times()) throw_usage("`keep_times`: the ratings have no times");
  RatingPacks made;
  CleanRows rows =
      clean_rows(store, spec.rules, row_form(spec.split, spec.keep_times), spec.keep_times, made.steps);
  LiveRatings live{std::vector<std::uint8_t>(store.user_count(), 1),
                   std::vector<std::uint8_t>(store.item_count(), 1)};
  if (items.frozen) keep_known_items(rows, *items.frozen, items.unseen, live, made.steps);
  const std::uint64_t known_ratings = made.steps.back().ratings;
  keep_frequent(rows, spec.rules, live, made.steps);
  const bool needs_ratings =
      spec.split.split_by != SplitKind::users_by_id && !may_be_a_part(items, spec.rules, known_ratings);
  if (needs_ratings && made.steps.back().ratings == 0) throw_nothing_left(spec.rules, made.steps);

  RatingSplit split(spec.split, spec.seed, rows, live, made.steps.back().ratings, store.has_times(),
                    std::move(given));
  const TrainingStats stats = scan_ratings(rows, live, split, spec.rules.values);
  made.values = stats.values.histogram();
  made.stored = spec.rules.values.value_or(stats.values.fit().stored());
  ItemColumns columns = items.frozen ? reuse_items(stats.item_counts, *items.frozen)
                                     : order_items(stats.item_counts, spec.id_order, items.sorted);
  leave_out_dropped(live, columns);
  if (items.lists_unseen && spec.split.split_by != SplitKind::none)
    made.unseen_items = unseen_items(rows, live, columns);
  if (needs_ratings && made.unseen_items.empty() && !has_ratings(columns))
    throw_nothing_left(spec.rules, made.steps);

  auto source = std::make_unique<RowSource>(RowSource{std::move(rows), std::move(live), std::move(split),
                                                      std::move(columns), made.stored.type != ValueType::none,
                                                      spec.keep_times, time_scale,
                                                      spec.rules.duplicates == Duplicates::keep});
  for (const Split pack : source->split.splits())
    made.packs.emplace_back(find_users(*source, spec, pack), *source);
  if (source->rows.is_spilled()) {
    // Rows are looked up by user from here on, which a spilled CleanRows cannot do.
    write_rows_to_disk(*source, store.spec(), made.packs);
    source->rows = CleanRows(0, "");
  }
  made.source = std::move(source);
  return made;
}

}  // namespace chunkhit
