#include "pack/time_split.h"

#include <oneapi/tbb/enumerable_thread_specific.h>

#include <atomic>
#include <cstddef>
#include <limits>
#include <vector>

namespace chunkhit {
namespace {

constexpr int kDigitBits = 16;
constexpr std::size_t kDigits = 1 << kDigitBits;
constexpr std::uint64_t kSign = 1ull << 63;

template <class Visit>
void for_each_time(const RatingRows& bucket, const LiveRatings& live, Visit visit) {
  for (std::size_t index = 0; index < bucket.row_count(); ++index) {
    const RatingRow row = bucket.row(index);
    if (live.users[row.user] == 0) continue;
    for (std::size_t at = 0; at < row.items.size(); ++at)
      if (live.items[row.items[at]] != 0) visit(row.times[at]);
  }
}

/// As an unsigned number in the same order.
std::uint64_t ordered(std::int64_t time) { return static_cast<std::uint64_t>(time) ^ kSign; }

/// Counts the times whose bits above `shift` + 16 equal those of `prefix` by their next 16 bits.
std::vector<std::uint64_t> count_digits(const RowStore& rows, const LiveRatings& live, std::uint64_t prefix,
                                        int shift) {
  const std::uint64_t mask = shift + kDigitBits == 64 ? 0 : ~std::uint64_t{0} << (shift + kDigitBits);
  tbb::enumerable_thread_specific<std::vector<std::uint64_t>> counts(
      [] { return std::vector<std::uint64_t>(kDigits); });
  rows.for_each_bucket([&](const RatingRows& bucket) {
    std::vector<std::uint64_t>& local = counts.local();
    for_each_time(bucket, live, [&](std::int64_t time) {
      const std::uint64_t bits = ordered(time);
      if ((bits & mask) == prefix) ++local[(bits >> shift) % kDigits];
    });
  });
  std::vector<std::uint64_t> sum(kDigits);
  for (const std::vector<std::uint64_t>& local : counts)
    for (std::size_t digit = 0; digit < kDigits; ++digit) sum[digit] += local[digit];
  return sum;
}

}  // namespace

std::uint64_t count_since(const RowStore& rows, const LiveRatings& live, std::int64_t time) {
  std::atomic<std::uint64_t> all{0};
  rows.for_each_bucket([&](const RatingRows& bucket) {
    std::uint64_t count = 0;
    for_each_time(bucket, live, [&](std::int64_t other) { count += other >= time ? 1 : 0; });
    all += count;
  });
  return all;
}

std::optional<std::int64_t> latest_cut(const RowStore& rows, const LiveRatings& live, std::uint64_t count) {
  if (count == 0) return {};
  // The time of the count-th latest rating, 16 bits at a time from the highest.
  std::uint64_t found = 0;
  std::uint64_t left = count;  // ratings to go, among those that begin with the bits found
  std::uint64_t equal = 0;     // ratings with the digit that was found last
  for (int shift = 64 - kDigitBits; shift >= 0; shift -= kDigitBits) {
    const std::vector<std::uint64_t> digits = count_digits(rows, live, found, shift);
    std::size_t digit = kDigits;
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

}  // namespace chunkhit
