#include "ratings/rating_split.h"

#include <oneapi/tbb/enumerable_thread_specific.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>
#include <tuple>
#include <utility>

#include "base/random.h"
#include "base/text.h"
#include "base/throw_error.h"
#include "base/words.h"

namespace chunkhit {
namespace {

// Times are searched 16 bits at a time: four passes over the rows, with one table of 65,536 counts each.
constexpr int kRadixBits = 16;
constexpr std::size_t kRadix = 1 << kRadixBits;
constexpr std::uint64_t kSign = 1ull << 63;

/// Calls `visit` with the time of each rating of a live item by a live user.
template <class Visit>
void for_each_time(const RatingRows& bucket, const LiveRatings& live, Visit visit) {
  for (std::size_t index = 0; index < bucket.row_count(); ++index) {
    const RatingRow row = bucket.row(index);
    if (live.users[row.user] == 0) continue;
    for (std::size_t at = 0; at < row.items.size(); ++at)
      if (live.items[row.items[at]] != 0) visit(row.times[at]);
  }
}

/// Maps a time to an unsigned number of the same order by flipping the sign bit.
std::uint64_t ordered(std::int64_t time) { return static_cast<std::uint64_t>(time) ^ kSign; }

/// Counts the times whose bits above `shift` + 16 equal those of `prefix` by their next 16 bits.
std::vector<std::uint64_t> count_digits(const CleanRows& rows, const LiveRatings& live, std::uint64_t prefix,
                                        int shift) {
  const std::uint64_t mask = shift + kRadixBits == 64 ? 0 : ~std::uint64_t{0} << (shift + kRadixBits);
  tbb::enumerable_thread_specific<std::vector<std::uint64_t>> counts(
      [] { return std::vector<std::uint64_t>(kRadix); });
  rows.for_each_bucket([&](const RatingRows& bucket) {
    std::vector<std::uint64_t>& local = counts.local();
    for_each_time(bucket, live, [&](std::int64_t time) {
      const std::uint64_t bits = ordered(time);
      if ((bits & mask) == prefix) ++local[(bits >> shift) % kRadix];
    });
  });
  std::vector<std::uint64_t> sum(kRadix);
  for (const std::vector<std::uint64_t>& local : counts)
    for (std::size_t digit = 0; digit < kRadix; ++digit) sum[digit] += local[digit];
  return sum;
}

}  // namespace

/// Counts the live ratings at or after `time`.
std::uint64_t count_since(const CleanRows& rows, const LiveRatings& live, std::int64_t time) {
  std::atomic<std::uint64_t> all{0};
  rows.for_each_bucket([&](const RatingRows& bucket) {
    std::uint64_t count = 0;
    for_each_time(bucket, live, [&](std::int64_t other) { count += other >= time ? 1 : 0; });
    all += count;
  });
  return all;
}

/// Finds the latest time of the live ratings.
std::optional<LatestTime> latest_time(const CleanRows& rows, const LiveRatings& live) {
  std::mutex mutex;
  std::optional<LatestTime> latest;
  rows.for_each_bucket([&](const RatingRows& bucket) {
    std::optional<std::int64_t> time;
    for_each_time(bucket, live, [&](std::int64_t other) { time = std::max(other, time.value_or(other)); });
    const std::lock_guard lock(mutex);
    if (time) latest = {std::max(*time, latest ? latest->time : *time), 0};
  });
  if (latest) latest->count = count_since(rows, live, latest->time);
  return latest;
}

/// A radix select: finds the `count`-th latest time without sorting or storing the times.
std::optional<std::int64_t> latest_time_split(const CleanRows& rows, const LiveRatings& live,
                                              std::uint64_t count) {
  if (count == 0) return {};
  // The time of the count-th latest rating, 16 bits at a time from the highest.
  std::uint64_t found = 0;
  std::uint64_t left = count;  // ratings to go, among those that begin with the bits found
  std::uint64_t equal = 0;     // ratings with the digit that was found last
  for (int shift = 64 - kRadixBits; shift >= 0; shift -= kRadixBits) {
    const std::vector<std::uint64_t> digits = count_digits(rows, live, found, shift);
    std::size_t digit = kRadix;
    do {
      if (digit == 0) return std::numeric_limits<std::int64_t>::min();  // there are not so many
      --digit;
      if (digits[digit] >= left) break;
      left -= digits[digit];
    } while (true);
    equal = digits[digit];
    found |= std::uint64_t{digit} << shift;
  }
  const auto time = static_cast<std::int64_t>(found ^ kSign);
  if (equal == left) return time;
  if (time == std::numeric_limits<std::int64_t>::max()) return {};
  return time + 1;  // ratings of equal times stay together, before the cut
}

namespace {

void check_amount(const char* name, const SplitAmount& amount) {
  if (!(amount.share >= 0 && amount.share < 1))
    throw_usage("`" + std::string(name) + "`: expected a count or a share below 1, found a share of " +
                number_text(amount.share));
}

/// A whole share of `all`. Shares like 0.2 are not exact in binary: (1 - 0.8) · 5 must be 1, not 0.999….
std::uint64_t share_of(double share, std::uint64_t all) {
  const double exact = share * static_cast<double>(all);
  return std::min(all, static_cast<std::uint64_t>(exact + 1e-9 * static_cast<double>(all + 1)));
}

/// Something with a number by which it is chosen, the lowest first: equal ones are distinguished by what it
/// is, so that nothing depends on the order in which they come.
struct Drawn {
  std::uint64_t bits;
  std::uint32_t number;  ///< of the user, item or position
  std::uint32_t index;
  bool operator<(const Drawn& other) const {
    return std::tie(bits, number) < std::tie(other.bits, other.number);
  }
};

/// Moves the `first` lowest to the front and the `second` next behind them.
void choose(std::vector<Drawn>& drawn, std::uint64_t first, std::uint64_t second) {
  const auto at = [&](std::uint64_t index) { return drawn.begin() + static_cast<std::ptrdiff_t>(index); };
  if (first < drawn.size()) std::nth_element(drawn.begin(), at(first), drawn.end());
  if (first + second < drawn.size()) std::nth_element(at(first), at(first + second), drawn.end());
}

/// `user` is a number, or the hash of an id.
Drawn draw(std::uint64_t seed, Purpose purpose, std::uint64_t user, std::uint32_t item, std::uint32_t index) {
  return {random_bits(seed ^ mix_bits(user + 1), purpose, item), item, index};
}

/// A number that is the lower the later a time is.
std::uint64_t latest_first(std::int64_t time) { return ~ordered(time); }

/// leave_one_out takes one rating of each user.
void check_one(const char* name, const SplitAmount& amount) {
  if (!amount.is_none() && amount.count != 1)
    throw_usage("`" + std::string(name) + "`: expected 1, or nothing, for `split_by` leave-one-out");
}

/// A split whose users are listed cannot be drawn at random as well.
void check_lists(const RatingSplitSpec& spec) {
  const std::pair<const char*, bool> lists[] = {{"validation", !spec.validation_users.empty()},
                                                {"test", !spec.test_users.empty()}};
  for (const auto& [name, is_given] : lists) {
    if (!is_given) continue;
    const std::string split(name);
    if (spec.split_by != SplitKind::users) throw_usage("`" + split + "_users`: only for `split_by` users");
    if (!(split == "test" ? spec.test : spec.validation).is_none())
      throw_usage("`" + split + "`, `" + split + "_users`: expected one of them");
  }
}

/// Files per split belong to `split_by` given, which needs a training file and at least one other.
void check_files(const RatingSplitSpec& spec) {
  if (spec.split_by != SplitKind::given && spec.files.count() > 0)
    throw_usage("`train_file`, `validation_file`, `test_file`: only for `split_by` given");
  if (spec.split_by != SplitKind::given) return;
  if (spec.files.train == 0) throw_usage("`train_file`: expected a file of ratings for training");
  if (!spec.has_validation() && !spec.has_test())
    throw_usage("`test_file`: expected a file of held-out ratings, here or as `validation_file`");
}

bool divides_by_user(SplitKind kind) { return kind == SplitKind::ratio || kind == SplitKind::leave_one_out; }

[[noreturn]] void refuse_without_times(SplitKind kind) {
  std::string what = "`split_by` " + name_of(kind) + ": the ratings have no times: `time` names their column";
  if (divides_by_user(kind)) what += "; or `split_order` random or input";
  throw_usage(what);
}

}  // namespace

SplitOrder RatingSplitSpec::resolved_order() const {
  if (split_order != SplitOrder::automatic) return split_order;
  return split_by == SplitKind::leave_one_out ? SplitOrder::time : SplitOrder::random;
}

bool RatingSplitSpec::is_by_time() const {
  return split_by == SplitKind::time || (divides_by_user(split_by) && resolved_order() == SplitOrder::time);
}

bool RatingSplitSpec::has_validation() const {
  return !validation.is_none() || !validation_users.empty() || files.validation > 0;
}

bool RatingSplitSpec::has_test() const {
  return !test.is_none() || !test_users.empty() || files.test > 0 || before ||
         split_by == SplitKind::leave_one_out;
}

std::uint64_t SplitAmount::of(std::uint64_t all) const { return count > 0 ? count : share_of(share, all); }

void check_split(const RatingSplitSpec& spec) {
  check_amount("validation", spec.validation);
  check_amount("test", spec.test);
  const double share = spec.validation.share + spec.test.share;
  if (share >= 1) throw_usage("`validation` and `test`: expected shares of less than 1 together");
  if (!(spec.fold_in > 0 && spec.fold_in < 1))
    throw_usage("`fold_in`: expected a share above 0 and below 1, found " + number_text(spec.fold_in));
  if (spec.fold_in != RatingSplitSpec().fold_in && !spec.is_by_user())
    throw_usage("`fold_in`: only for `split_by` users and users-by-id, found " + name_of(spec.split_by));
  if (spec.before && spec.split_by != SplitKind::time) throw_usage("`before`: only for `split_by` time");
  if (spec.before && !spec.test.is_none()) throw_usage("`test`, `before`: expected one of them");
  if (spec.split_order != SplitOrder::automatic && !divides_by_user(spec.split_by))
    throw_usage("`split_order`: only for `split_by` ratio and leave-one-out");
  if (spec.split_by == SplitKind::leave_one_out) {
    check_one("validation", spec.validation);
    check_one("test", spec.test);
  }
  if (spec.hide_validation &&
      (spec.split_by == SplitKind::none || spec.is_by_user() || !spec.has_validation() || !spec.has_test()))
    throw_usage("`hide_validation`: only where a user's ratings have both a validation and a test split");
  check_lists(spec);
  if (spec.split_by == SplitKind::users_by_id && spec.validation.count + spec.test.count > 0)
    throw_usage("`validation`, `test`: with `split_by` users-by-id expected shares below 1, found a count");
  check_files(spec);
  const bool amounts = !spec.validation.is_none() || !spec.test.is_none();
  if (spec.split_by == SplitKind::none && amounts)
    throw_usage("`validation`, `test`: need `split_by`, found none");
  if (spec.split_by == SplitKind::given && amounts)
    throw_usage("`validation`, `test`: not for a split given as files");
  if (spec.split_by != SplitKind::none && !spec.has_validation() && !spec.has_test())
    throw_usage("`split_by` " + name_of(spec.split_by) + ": expected `validation` or `test`");
}

RatingSplit::RatingSplit(const RatingSplitSpec& spec, std::uint64_t seed, const CleanRows& rows,
                         const LiveRatings& live, std::uint64_t ratings, bool has_times, GivenSplit given)
    : spec_(spec), seed_(seed), given_(std::move(given)), splits_{Split::train} {
  check_split(spec);
  if (spec.has_validation()) splits_.push_back(Split::validation);
  if (spec.has_test()) splits_.push_back(Split::test);
  if (spec.is_by_user()) choose_users(live);
  if (spec.is_by_time() && !has_times) refuse_without_times(spec.split_by);
  if (spec.split_by == SplitKind::time) choose_times(rows, live, ratings);
}

/// Listed users keep their split. The remaining ones are ranked by a random number that depends only on the
/// seed and the user: the lowest become the test split, the next the validation split.
void RatingSplit::choose_users(const LiveRatings& live) {
  split_of_user_.assign(live.users.size(), Split::train);
  const std::uint64_t listed_test = assign_listed(given_.test_users, Split::test, live);
  const std::uint64_t listed = listed_test + assign_listed(given_.validation_users, Split::validation, live);
  std::vector<Drawn> users;
  for (std::size_t user = 0; user < live.users.size(); ++user) {
    if (live.users[user] == 0 || split_of_user_[user] != Split::train) continue;
    const auto number = static_cast<std::uint32_t>(user);
    users.push_back({random_bits(seed_, Purpose::split, number), number, number});
  }
  if (is_by_id()) return;  // all of them are listed
  // Shares are of all live users, the listed ones included.
  const std::uint64_t all = users.size() + listed;
  const std::uint64_t test = spec_.test.of(all);
  const std::uint64_t validation = spec_.validation.of(all);
  if (test >= users.size() || validation >= users.size() - test)
    refuse_too_many(validation + listed - listed_test, test + listed_test, live);
  choose(users, test, validation);
  for (std::uint64_t index = 0; index < test + validation; ++index)
    split_of_user_[users[index].number] = index < test ? Split::test : Split::validation;
}

/// Says which flags ask for how many users, and how many the input or the rules leave.
void RatingSplit::refuse_too_many(std::uint64_t validation, std::uint64_t test,
                                  const LiveRatings& live) const {
  const auto flag = [](const std::string& name, std::uint64_t count, bool is_list) {
    return "`" + name + (is_list ? "_users`: " + count_text(count, "user") : "` " + std::to_string(count));
  };
  std::string text;
  if (test > 0) text = flag("test", test, !spec_.test_users.empty());
  if (validation > 0)
    text = flag("validation", validation, !spec_.validation_users.empty()) +
           (text.empty() ? "" : " and " + text);
  const auto all =
      static_cast<std::uint64_t>(std::ranges::count_if(live.users, [](auto of) { return of > 0; }));
  const bool is_drawn = spec_.test_users.empty() && spec_.validation_users.empty();
  const std::uint64_t tenth = all / 10;
  throw_usage(text + (all == live.users.size() ? ": the input has only " : ": the rules leave only ") +
              count_text(all, "user") + (validation + test == all ? ", and training needs some" : "") +
              (is_drawn && tenth > 0 ? "; a share of 0.1 holds out " + count_text(tenth, "user") : ""));
}

/// Assigns the listed users to a split; returns how many of them are live.
std::uint64_t RatingSplit::assign_listed(const std::vector<std::uint32_t>& users, Split split,
                                         const LiveRatings& live) {
  std::uint64_t count = 0;
  for (const std::uint32_t user : users) {
    split_of_user_[user] = split;
    count += live.users[user];
  }
  return count;
}

/// Finds the first time of the test split, then the first time of the validation split before it.
void RatingSplit::choose_times(const CleanRows& rows, const LiveRatings& live, std::uint64_t ratings) {
  const std::uint64_t test = std::min(ratings, spec_.test.of(ratings));
  test_since_ = spec_.before ? spec_.before : latest_time_split(rows, live, test);
  const std::uint64_t tested = test_since_ ? count_since(rows, live, *test_since_) : 0;
  if (tested == 0 && spec_.has_test()) latest_ = latest_time(rows, live);  // for the message
  if (spec_.validation.is_none()) return;
  // Equal times may leave test fewer ratings than it asked for: validation does not get the others.
  validation_since_ = latest_time_split(rows, live, tested + std::min(ratings, spec_.validation.of(ratings)));
}

/// Gives each entry of a row its split.
void RatingSplit::divide(const RatingRow& row, std::span<const std::uint32_t> entries,
                         std::vector<Split>& splits) const {
  splits.assign(entries.size(), split_of(row.user));
  if (divides_by_user(spec_.split_by)) divide_row(row, entries, splits);
  if (spec_.split_by == SplitKind::given) divide_given(row, entries, splits);
  if (spec_.split_by != SplitKind::time) return;
  for (std::size_t index = 0; index < entries.size(); ++index) {
    const std::int64_t time = row.times[entries[index]];
    if (validation_since_ && time >= *validation_since_) splits[index] = Split::validation;
    if (test_since_ && time >= *test_since_) splits[index] = Split::test;
  }
}

/// Divides the ratings of one user: random, latest first, or last of the input first.
void RatingSplit::divide_row(const RatingRow& row, std::span<const std::uint32_t> entries,
                             std::vector<Split>& splits) const {
  if (entries.empty()) return;
  const bool one_out = spec_.split_by == SplitKind::leave_one_out;
  // One rating at least stays for training, whatever the counts.
  const std::uint64_t all = entries.size();
  const std::uint64_t test = std::min(one_out ? 1 : spec_.test.of(all), all - 1);
  const std::uint64_t validation = std::min(spec_.validation.of(all), all - 1 - test);
  std::vector<Drawn> drawn(all);
  const SplitOrder order = spec_.resolved_order();
  std::uint64_t repeats = 0;  // ratings of the same item before this one
  for (std::uint32_t index = 0; index < all; ++index) {
    const std::uint32_t entry = entries[index];
    repeats = index > 0 && row.items[entry] == row.items[entries[index - 1]] ? repeats + 1 : 0;
    drawn[index] = order == SplitOrder::random
                       ? draw(repeats == 0 ? seed_ : mix_bits(seed_ + repeats), Purpose::held_out, row.user,
                              row.items[entry], index)
                       : Drawn{order == SplitOrder::time ? latest_first(row.times[entry]) : 0,
                               ~row.positions[entry], index};
  }
  choose(drawn, test, validation);
  for (std::uint64_t at = 0; at < test + validation; ++at)
    splits[drawn[at].index] = at < test ? Split::test : Split::validation;
}

/// The files are read in the order training, validation, test: positions in a user's row tell the file.
void RatingSplit::divide_given(const RatingRow& row, std::span<const std::uint32_t> entries,
                               std::vector<Split>& splits) const {
  const auto count_of = [&](const std::vector<std::uint32_t>& counts) -> std::uint64_t {
    return row.user < counts.size() ? counts[row.user] : 0;
  };
  const std::uint64_t train = count_of(given_.train_counts);
  const std::uint64_t validation = train + count_of(given_.validation_counts);
  for (std::size_t index = 0; index < entries.size(); ++index) {
    const std::uint64_t position = row.positions[entries[index]];
    if (position >= train) splits[index] = position < validation ? Split::validation : Split::test;
  }
}

/// Marks the items that are the target of a held-out user: the lowest by a random number of user and item.
void RatingSplit::fold(std::uint32_t user, std::span<const std::uint32_t> items,
                       std::vector<std::uint8_t>& asked) const {
  asked.assign(items.size(), 0);
  const std::uint64_t key = is_by_id() ? given_.id_hashes[user] : user;
  const auto repeats = [&](std::uint32_t index) { return index > 0 && items[index] == items[index - 1]; };
  std::vector<Drawn> drawn;
  drawn.reserve(items.size());
  for (std::uint32_t index = 0; index < items.size(); ++index)
    if (!repeats(index)) drawn.push_back(draw(seed_, Purpose::fold_in, key, items[index], index));
  if (drawn.size() < kMinItemsToFold) return;
  const std::uint64_t count = share_of(1 - spec_.fold_in, drawn.size());
  choose(drawn, count, 0);
  for (std::uint64_t at = 0; at < count; ++at) asked[drawn[at].index] = 1;
  for (std::uint32_t index = 0; index < items.size(); ++index)
    if (repeats(index)) asked[index] = asked[index - 1];
}

}  // namespace chunkhit
