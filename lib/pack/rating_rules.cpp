#include "pack/rating_rules.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "base/words.h"
#include "chunkhit/error.h"
#include "types/rounded_values.h"

namespace chunkhit {
namespace {

constexpr std::size_t index_of(RowStep step) { return static_cast<std::size_t>(step); }

/// Applies the rules to one bucket; what is kept moves to the front.
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
    cut(rows_.places);
    return counts_;
  }

 private:
  void run_row(std::size_t row, std::uint64_t begin, std::uint64_t end) {
    if (keeps_all(begin, end)) return keep_row(begin, end);
    std::size_t steps_of_row = 0;  // after how many steps it had ratings
    while (begin < end) {
      std::uint64_t next = begin + 1;
      while (next < end && rows_.items[next] == rows_.items[begin]) ++next;
      const RowStep last = run_pair(row, begin, next);
      items_.mark(rows_.items[begin], last);
      steps_of_row = std::max(steps_of_row, index_of(last) + 1);
      if (last == RowStep::above) keep(begin);
      begin = next;
    }
    for (std::size_t step = 0; step < steps_of_row; ++step) ++counts_.users[step];
  }

  /// Whether every rule leaves all ratings of a row, as of most rows of most inputs.
  [[nodiscard]] bool keeps_all(std::uint64_t begin, std::uint64_t end) const {
    if (rules_.min_value || rules_.above) return false;
    bool keeps = true;
    for (std::uint64_t at = begin + 1; at < end; ++at) keeps &= rows_.items[at] != rows_.items[at - 1];
    if (!rows_.values.empty())
      for (std::uint64_t at = begin; at < end; ++at)
        keeps &= std::abs(rows_.values[at]) <= std::numeric_limits<float>::max() && rows_.values[at] != 0;
    return keeps;
  }

  void keep_row(std::uint64_t begin, std::uint64_t end) {
    for (std::size_t step = 0; step < kRowSteps; ++step) {
      counts_.ratings[step] += end - begin;
      counts_.users[step] += end > begin ? 1 : 0;
    }
    for (std::uint64_t at = begin; at < end; ++at) {
      items_.mark(rows_.items[at], RowStep::above);
      if (at != kept_) move(at, kept_);
      ++kept_;
    }
  }

  /// Applies the rules to all ratings [begin, end) of one item by one user. Tells the last step after which
  /// one was left; what is left lies at `begin`.
  RowStep run_pair(std::size_t row, std::uint64_t begin, std::uint64_t end) {
    counts_.ratings[index_of(RowStep::input)] += end - begin;
    if (!rows_.values.empty()) end = drop_zeros(row, begin, end);
    if (begin == end) return RowStep::input;
    counts_.ratings[index_of(RowStep::zeros)] += end - begin;
    if (end - begin > 1) merge(row, begin, end);
    ++counts_.ratings[index_of(RowStep::duplicates)];
    const float value = rows_.values.empty() ? 1.0F : rows_.values[begin];
    if (rules_.min_value && !(value >= *rules_.min_value)) return RowStep::duplicates;
    ++counts_.ratings[index_of(RowStep::min_value)];
    if (rules_.above && !(value > *rules_.above)) return RowStep::min_value;
    ++counts_.ratings[index_of(RowStep::above)];
    return RowStep::above;
  }

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

  void merge(std::size_t row, std::uint64_t begin, std::uint64_t end) {
    const std::uint32_t user = rows_.first_user + static_cast<std::uint32_t>(row);
    if (!counts_.first_duplicate) counts_.first_duplicate = {user, rows_.items[begin]};
    std::uint64_t chosen = begin;
    for (std::uint64_t at = begin + 1; at < end; ++at)
      if (replaces(at, chosen)) chosen = at;
    double sum = 0;
    if (rules_.duplicates == Duplicates::sum)
      for (std::uint64_t at = begin; at < end; ++at) sum += rows_.values.empty() ? 1 : rows_.values[at];
    move(chosen, begin);
    if (rules_.duplicates == Duplicates::sum && !rules_.rounds_values &&
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
        break;
    }
    return false;
  }

  void set_value(std::size_t row, std::uint64_t at, float value) {
    check_finite(row, rows_.items[at], value);
    if (rows_.values.empty()) rows_.values.assign(rows_.nnz(), 1.0F);
    rows_.values[at] = value;
  }

  void check_finite(std::size_t row, std::uint32_t item, float value) const {
    if (!std::isfinite(value)) refuse(row, item, value);
  }

  [[noreturn]] void refuse(std::size_t row, std::uint32_t item, float value) const {
    throw Error(ErrorCode::bad_data, "user number " + std::to_string(rows_.first_user + row) +
                                         ", item number " + std::to_string(item) +
                                         ": expected a finite value, found " + std::to_string(value));
  }

  [[noreturn]] void refuse_sum(std::size_t row, std::uint32_t item, double sum) const {
    throw Error(ErrorCode::bad_data, "user number " + std::to_string(rows_.first_user + row) +
                                         ", item number " + std::to_string(item) + ": the sum " +
                                         number_text(sum) +
                                         " is no 32-bit float; --values f32 takes the nearest");
  }

  void move(std::uint64_t from, std::uint64_t to) {
    rows_.items[to] = rows_.items[from];
    if (!rows_.values.empty()) rows_.values[to] = rows_.values[from];
    if (!rows_.times.empty()) rows_.times[to] = rows_.times[from];
    if (!rows_.places.empty()) rows_.places[to] = rows_.places[from];
  }

  /// Leaves what is kept, and gives memory back where it is worth a copy.
  template <class T>
  void cut(std::vector<T>& all) const {
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

}  // namespace chunkhit
