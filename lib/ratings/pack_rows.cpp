#include "ratings/pack_rows.h"

#include <algorithm>
#include <bit>
#include <compare>
#include <mutex>
#include <numeric>
#include <utility>

#include "base/throw_error.h"
#include "ratings/rating_fields.h"

namespace chunkhit {

/// Numbers the items that have training ratings: by first occurrence, by id, or by popularity (ties by first
/// occurrence, because the sort is stable).
ItemColumns order_items(std::span<const std::uint32_t> counts, ItemOrder order,
                        std::span<const std::uint32_t> sorted) {
  ItemColumns made;
  if (order == ItemOrder::sorted) {
    made.items.assign(sorted.begin(), sorted.end());
  } else {
    made.items.resize(counts.size());
    std::iota(made.items.begin(), made.items.end(), 0u);
  }
  std::erase_if(made.items, [&](std::uint32_t item) { return item >= counts.size() || counts[item] == 0; });
  if (order == ItemOrder::popularity)
    std::stable_sort(made.items.begin(), made.items.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return counts[a] > counts[b]; });
  return reuse_items(counts, made.items);
}

/// Takes the columns as given; an item that is not in this input keeps an empty column.
ItemColumns reuse_items(std::span<const std::uint32_t> counts, std::span<const std::uint32_t> frozen) {
  ItemColumns made;
  made.items.assign(frozen.begin(), frozen.end());
  made.columns.assign(counts.size(), kNoColumn);
  made.counts.resize(frozen.size());
  for (std::size_t column = 0; column < frozen.size(); ++column) {
    const std::uint32_t item = frozen[column];
    if (item >= counts.size()) continue;
    if (made.columns[item] != kNoColumn)
      throw_bad_data("item number " + std::to_string(item) + " is column " +
                     std::to_string(made.columns[item]) + " and column " + std::to_string(column));
    made.columns[item] = static_cast<std::uint32_t>(column);
    made.counts[column] = counts[item];
  }
  return made;
}

/// Lists the indices of a row's live entries without a branch: `count` advances only past live ones.
void list_live(const RatingRow& row, const LiveRatings& live, std::vector<std::uint32_t>& entries) {
  entries.resize(live.users[row.user] != 0 ? row.items.size() : 0);
  std::size_t count = 0;
  for (std::uint32_t index = 0; index < entries.size(); ++index) {
    entries[count] = index;
    count += live.items[row.items[index]];
  }
  entries.resize(count);
}

/// Makes X and the held-out ratings of one user for one pack; `concerned_` says whether the split has the
/// user in this pack at all.
void UserRows::make(const RatingRow& row, Split pack) {
  pack_ = pack;
  unseen_ = 0;
  concerned_ = false;
  x_.clear();
  held_out_.clear();
  if (source_.split.is_by_user() && source_.split.split_of(row.user) != pack) return;
  if (pack == Split::train && !source_.split.divides_rows()) {
    make_whole(row);
    return;
  }
  list_live(row, source_.live, entries_);
  if (source_.split.is_by_user())
    make_held_out_user(row);
  else
    make_from_parts(row);
}

/// Without a split every live rating is for training: an item has a column exactly if it is live.
void UserRows::make_whole(const RatingRow& row) {
  if (source_.live.users[row.user] == 0) return;
  x_.resize(row.items.size());
  std::size_t count = 0;
  const auto add_all = [&](const auto& payload) {
    for (std::size_t index = 0; index < row.items.size(); ++index) {
      const std::uint32_t column = source_.columns.columns[row.items[index]];
      x_[count] = RowEntry{column} << 32 | payload(index);
      count += column != kNoColumn ? 1 : 0;
    }
  };
  if (source_.has_times || row.values.empty())
    add_all([](std::size_t index) { return static_cast<std::uint32_t>(index); });
  else
    add_all([values = row.values.data()](std::size_t index) {
      return std::bit_cast<std::uint32_t>(values[index]);
    });
  x_.resize(count);
  concerned_ = count > 0;
}

std::uint64_t UserRows::count_whole(const RatingRow& row) const {
  if (source_.live.users[row.user] == 0) return 0;
  const auto has_column = [&](std::uint32_t item) { return source_.columns.columns[item] != kNoColumn; };
  return static_cast<std::uint64_t>(std::count_if(row.items.begin(), row.items.end(), has_column));
}

/// Removes items without a column before dividing the rest into X and held out, as vae_cf does.
void UserRows::make_held_out_user(const RatingRow& row) {
  concerned_ = true;  // even if no ratings are left, which can happen to a listed user
  const auto is_unseen = [&](std::uint32_t index) { return column_of(row, index) == kNoColumn; };
  unseen_ = std::erase_if(entries_, is_unseen);
  items_.clear();
  const bool is_by_id = source_.split.is_by_id();
  for (const std::uint32_t index : entries_)
    items_.push_back(is_by_id ? column_of(row, index) : row.items[index]);
  source_.split.fold(row.user, items_, asked_);
  for (std::size_t at = 0; at < entries_.size(); ++at)
    add(row, entries_[at], asked_[at] != 0 ? held_out_ : x_);
}

/// X holds the ratings that the split gives for this pack: training ones, for a test pack also
/// validation ones unless they are hidden. Held out are the pack's own ratings.
void UserRows::make_from_parts(const RatingRow& row) {
  source_.split.divide(row, entries_, splits_);
  for (std::size_t at = 0; at < entries_.size(); ++at) {
    const bool is_of_pack = splits_[at] == pack_;
    const bool is_given = source_.split.is_given(splits_[at], pack_);
    if (!is_given && !is_of_pack) continue;
    concerned_ |= is_of_pack;
    if (column_of(row, entries_[at]) != kNoColumn)
      add(row, entries_[at], is_given ? x_ : held_out_);
    else
      unseen_ += is_of_pack ? 1 : 0;
  }
}

void UserRows::add(const RatingRow& row, std::uint32_t index, std::vector<RowEntry>& to) const {
  const bool holds_value = !source_.has_times && !row.values.empty();
  to.push_back(RowEntry{column_of(row, index)} << 32 |
               (holds_value ? std::bit_cast<std::uint32_t>(row.values[index]) : index));
}

namespace {

constexpr std::uint32_t kNoRow = UINT32_MAX;

std::uint32_t column_of(RowEntry entry) { return static_cast<std::uint32_t>(entry >> 32); }
std::uint32_t index_of(RowEntry entry) { return static_cast<std::uint32_t>(entry); }
/// The value of an entry of a row that has values; without times it lies in the entry.
float value_of(const RatingRow& row, const RowSource& source, RowEntry entry) {
  return source.has_times ? row.values[index_of(entry)]
                          : std::bit_cast<float>(static_cast<std::uint32_t>(entry));
}

/// Appends what `of` gives for each entry.
template <class Number, class Of>
void append_each(const std::vector<RowEntry>& entries, std::vector<Number>& to, const Of& of) {
  const std::size_t begin = to.size();
  to.resize(begin + entries.size());
  std::transform(entries.begin(), entries.end(), to.begin() + static_cast<std::ptrdiff_t>(begin), of);
}

/// When a rating was given, and where in the input it is.
struct InputOrder {
  std::int64_t time;  ///< as the input has it, with fractions that the pack leaves out
  std::uint32_t position;
  std::uint32_t at;  ///< in the row, whose columns ascend
  auto operator<=>(const InputOrder&) const = default;
};

InputOrder input_order(const RatingRow& row, std::uint32_t index, std::size_t at) {
  return {row.times[index], row.positions[index], static_cast<std::uint32_t>(at)};
}

/// Numbers the ratings of a row whose kept times are equal where the input has them in another order than the
/// columns. Keeps buffers, so each thread has its own.
class TieNumbers {
 public:
  /// Appends those of the row that was appended last; `order(at)` gives the order of its rating `at`.
  template <class Order>
  void append(const Order& order, CsrRows& to) {
    const std::size_t begin = to.indptr[to.indptr.size() - 2];
    const std::span<const std::int64_t> times = std::span(to.times).subspan(begin, to.indices.size() - begin);
    find_equal(times);
    keys_.clear();
    for (const std::uint32_t at : equal_) keys_.push_back(order(at));
    std::ranges::sort(keys_);
    for (std::size_t first = 0; first < keys_.size();) {
      std::size_t end = first + 1;
      bool by_column = true;
      for (; end < keys_.size() && times[keys_[end].at] == times[keys_[first].at]; ++end)
        by_column = by_column && keys_[end - 1].at < keys_[end].at;
      if (!by_column) {
        to.ties.resize(to.indices.size());
        for (std::size_t i = first; i < end; ++i)
          to.ties[begin + keys_[i].at] = static_cast<std::uint32_t>(i - first);
      }
      first = end;
    }
    if (!to.ties.empty()) to.ties.resize(to.indices.size());
  }

 private:
  /// A time of the row in hand, and the first rating that has it; kNoRating once it is in `equal_`.
  struct Seen {
    std::int64_t time = 0;
    std::uint32_t row = 0;  ///< a number of the row
    std::uint32_t first = 0;
  };
  static constexpr std::uint32_t kNoRating = UINT32_MAX;

  /// Finds ratings whose time others have, too: few, as a rule, which are all that is sorted.
  void find_equal(std::span<const std::int64_t> times) {
    equal_.clear();
    if (times.size() < 2) return;
    const auto bits = static_cast<int>(std::bit_width(2 * times.size() - 1));
    const std::size_t slots = std::size_t{1} << bits;
    if (seen_.size() < slots) seen_.resize(slots);
    if (++row_ == 0) {
      std::ranges::fill(seen_, Seen{});
      row_ = 1;
    }
    for (std::size_t at = 0; at < times.size(); ++at) {
      std::size_t slot = static_cast<std::uint64_t>(times[at]) * kGoldenRatio >> (64 - bits);
      while (seen_[slot].row == row_ && seen_[slot].time != times[at]) slot = (slot + 1) & (slots - 1);
      Seen& seen = seen_[slot];
      const auto number = static_cast<std::uint32_t>(at);
      if (seen.row != row_) {
        seen = {times[at], row_, number};
        continue;
      }
      if (seen.first != kNoRating) equal_.push_back(std::exchange(seen.first, kNoRating));
      equal_.push_back(number);
    }
  }

  static constexpr std::uint64_t kGoldenRatio = 0x9e3779b97f4a7c15;  // spreads near numbers
  std::vector<InputOrder> keys_;
  std::vector<std::uint32_t> equal_;
  std::vector<Seen> seen_;
  std::uint32_t row_ = 0;
};

/// Appends one row, made of a user's ratings, to the CSR arrays, its entries sorted by column.
void append_row(std::vector<RowEntry>& entries, const RatingRow& row, const RowSource& source,
                KeySort& sorter, TieNumbers& ties, CsrRows& to) {
  sorter.sort(entries);
  append_each(entries, to.indices, column_of);
  if (source.has_values && row.values.empty())
    to.values.resize(to.values.size() + entries.size(), 1.0F);
  else if (source.has_values && source.has_times)
    append_each(entries, to.values, [&](RowEntry entry) { return row.values[index_of(entry)]; });
  else if (source.has_values)
    append_each(entries, to.values,
                [](RowEntry entry) { return std::bit_cast<float>(static_cast<std::uint32_t>(entry)); });
  if (source.has_times)
    append_each(entries, to.times,
                [&](RowEntry entry) { return without_scale(row.times[index_of(entry)], source.time_scale); });
  to.indptr.push_back(to.indices.size());
  if (source.has_times)
    ties.append([&](std::size_t at) { return input_order(row, index_of(entries[at]), at); }, to);
}

void clear(CsrRows& rows) {
  rows.indptr.assign(1, 0);
  rows.indices.clear();
  rows.values.clear();
  rows.times.clear();
  rows.ties.clear();
}

/// Appends rows [first, end) of a store whose "users" are rows; rows beyond the last rating are empty.
void read_rows(const RatingStore& store, std::uint64_t first, std::uint64_t end, bool has_values,
               CsrRows& to) {
  const RowForm form = store.has_times() ? RowForm::with_positions : RowForm::ascending;
  TieNumbers ties;
  while (first < end && first < store.user_count()) {
    const std::uint64_t stop =
        std::min({end, std::uint64_t{store.user_count()}, (first / kBucketUsers + 1) * kBucketUsers});
    const RatingRows rows =
        store.rows(static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(stop), form);
    if (has_values) to.values.insert(to.values.end(), rows.values.begin(), rows.values.end());
    to.times.insert(to.times.end(), rows.times.begin(), rows.times.end());
    for (std::size_t index = 0; index < rows.row_count(); ++index) {
      const RatingRow row = rows.row(index);
      to.indices.insert(to.indices.end(), row.items.begin(), row.items.end());
      to.indptr.push_back(to.indices.size());
      if (!row.times.empty())
        ties.append([&](std::size_t at) { return input_order(row, static_cast<std::uint32_t>(at), at); }, to);
    }
    first = stop;
  }
  to.indptr.resize(to.indptr.size() + (end - first), to.indices.size());
}

/// Orders ratings by time, equal ones as in the input: a store keeps the order of what is appended.
void sort_by_time(const RatingRow& row, std::vector<RowEntry>& entries) {
  std::ranges::sort(entries, [&](RowEntry a, RowEntry b) {
    return input_order(row, index_of(a), 0) < input_order(row, index_of(b), 0);
  });
}

/// Ratings on their way to a store.
struct StoreBlock {
  std::vector<std::uint32_t> rows;
  std::vector<std::uint32_t> columns;
  std::vector<float> values;
  std::vector<std::int64_t> times;
  void add(std::uint32_t row_number, const RatingRow& row, std::vector<RowEntry>& entries,
           const RowSource& source) {
    if (source.has_times) sort_by_time(row, entries);
    for (const RowEntry entry : entries) {
      rows.push_back(row_number);
      columns.push_back(column_of(entry));
      values.push_back(row.values.empty() ? 1.0F : value_of(row, source, entry));
      if (source.has_times) times.push_back(without_scale(row.times[index_of(entry)], source.time_scale));
    }
  }
};

/// Inverts the list of users: user number to row, or kNoRow.
std::vector<std::uint32_t> rows_of_users(std::span<const std::uint32_t> users, std::size_t user_count) {
  std::vector<std::uint32_t> rows(user_count, kNoRow);
  for (std::size_t row = 0; row < users.size(); ++row) rows[users[row]] = static_cast<std::uint32_t>(row);
  return rows;
}

}  // namespace

PackRows::PackRows(PackUsers users, const RowSource& source) : users_(std::move(users)), source_(source) {}

void PackRows::fill(std::uint64_t first, std::uint64_t end, CsrRows& x, CsrRows& held_out) const {
  clear(x);
  clear(held_out);
  if (x_on_disk_ == nullptr) {
    fill_from_memory(first, end, x, held_out);
    return;
  }
  read_rows(*x_on_disk_, first, end, source_.has_values, x);
  if (has_held_out()) read_rows(*held_out_on_disk_, first, end, source_.has_values, held_out);
}

void PackRows::fill_from_memory(std::uint64_t first, std::uint64_t end, CsrRows& x, CsrRows& held_out) const {
  constexpr std::uint64_t kRowsAhead = 4;  // shuffled rows lie anywhere in memory
  UserRows rows(source_);
  KeySort sorter;
  TieNumbers ties;
  for (std::uint64_t row = first; row < end; ++row) {
    if (row + 2 * kRowsAhead < end) source_.rows.prefetch_begin(users_.users[row + 2 * kRowsAhead]);
    if (row + kRowsAhead < end) source_.rows.prefetch(users_.users[row + kRowsAhead]);
    const RatingRow ratings = source_.rows.row(users_.users[row]);
    rows.make(ratings, users_.split);
    append_row(rows.x(), ratings, source_, sorter, ties, x);
    if (has_held_out()) append_row(rows.held_out(), ratings, source_, sorter, ties, held_out);
  }
}

void write_rows_to_disk(const RowSource& source, const RatingStoreSpec& spec, std::vector<PackRows>& packs) {
  // Written in the order of rows, a piece of a pack is a few neighbouring buckets; in the order of users it
  // would be spread over the whole file. RatingStore gathers them again, rows taking the place of users.
  RatingStoreSpec each = spec;
  each.keeps_times = source.has_times;
  each.memory_bytes = spec.memory_bytes / (2 * packs.size());
  for (PackRows& pack : packs) {
    pack.x_on_disk_ = std::make_unique<RatingStore>(each);
    pack.held_out_on_disk_ = std::make_unique<RatingStore>(each);
    const std::vector<std::uint32_t> row_of = rows_of_users(pack.users(), source.live.users.size());
    std::mutex store_mutex;
    source.rows.for_each_bucket([&](const RatingRows& bucket) {
      UserRows rows(source);
      StoreBlock x;
      StoreBlock held_out;
      for (std::size_t index = 0; index < bucket.row_count(); ++index) {
        const RatingRow row = bucket.row(index);
        if (row_of[row.user] == kNoRow) continue;
        rows.make(row, pack.users_.split);
        x.add(row_of[row.user], row, rows.x(), source);
        held_out.add(row_of[row.user], row, rows.held_out(), source);
      }
      const std::lock_guard lock(store_mutex);
      pack.x_on_disk_->append(x.rows, x.columns, x.values, x.times);
      pack.held_out_on_disk_->append(held_out.rows, held_out.columns, held_out.values, held_out.times);
    });
  }
}

}  // namespace chunkhit
