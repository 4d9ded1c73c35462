#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "chunkhit/sparse.h"

namespace chunkhit {
namespace {

/// A draw that hits one of the row's own items is drawn again, up to so often; then the items that are left
/// are counted through.
constexpr std::uint64_t kTries = 64;

double weight_of(std::uint64_t count, double power) {
  return count == 0 ? 0 : std::pow(static_cast<double>(count), power);
}

bool is_own(std::span<const std::int32_t> own, std::uint32_t item) {
  return std::binary_search(own.begin(), own.end(), static_cast<std::int32_t>(item));
}

}  // namespace

// Vose's way: slots that are too small are filled up by those that are too large.
PopularitySampler::PopularitySampler(std::span<const std::uint64_t> item_counts, double power)
    : keep_(item_counts.size()), other_(item_counts.size()) {
  if (item_counts.size() > INT32_MAX)
    throw Error(ErrorCode::usage, "item_counts: must be at most 2147483647");
  std::vector<double> share(item_counts.size());
  double sum = 0;
  for (const std::uint64_t count : item_counts) sum += weight_of(count, power);
  if (!(sum > 0) || !std::isfinite(sum)) throw Error(ErrorCode::usage, "item_counts: no item can be drawn");
  std::vector<std::uint32_t> small;
  std::vector<std::uint32_t> large;
  for (std::uint32_t item = 0; item < share.size(); ++item) {
    share[item] = weight_of(item_counts[item], power) / sum * static_cast<double>(share.size());
    (share[item] < 1 ? small : large).push_back(item);
  }
  while (!small.empty() && !large.empty()) {
    const std::uint32_t item = small.back();
    small.pop_back();
    keep_[item] = share[item];
    other_[item] = large.back();
    share[large.back()] -= 1 - share[item];
    if (share[large.back()] >= 1) continue;
    small.push_back(large.back());
    large.pop_back();
  }
  // What is left is 1 but for rounding; an item that nobody has must not be drawn even then.
  const auto popular = static_cast<std::uint32_t>(std::max_element(item_counts.begin(), item_counts.end()) -
                                                  item_counts.begin());
  for (const auto* rest : {&small, &large})
    for (const std::uint32_t item : *rest) {
      keep_[item] = item_counts[item] == 0 ? 0 : 1;
      other_[item] = popular;
    }
}

std::uint32_t PopularitySampler::draw_any(std::uint64_t seed, std::uint64_t index) const {
  const std::uint64_t bits = random_bits(seed, Purpose::negatives, index);
  const auto slot = static_cast<std::uint32_t>((bits >> 32) * keep_.size() >> 32);
  const double place = static_cast<double>(bits & 0xffffffff) / 4294967296.0;
  return place < keep_[slot] ? slot : other_[slot];
}

std::uint32_t PopularitySampler::draw_one(std::span<const std::int32_t> own, std::uint64_t seed,
                                          std::uint64_t index) const {
  for (std::uint64_t attempt = 0; attempt < kTries; ++attempt) {
    const std::uint32_t item = draw_any(seed, index * kTries + attempt);
    if (!is_own(own, item)) return item;
  }
  return draw_rare(own, seed, index);
}

// For rows that own nearly everything that is drawn: one of the others, by its weight.
std::uint32_t PopularitySampler::draw_rare(std::span<const std::int32_t> own, std::uint64_t seed,
                                           std::uint64_t index) const {
  std::vector<double> weights(keep_.size());
  for (std::uint32_t slot = 0; slot < keep_.size(); ++slot) {
    if (!is_own(own, slot)) weights[slot] += keep_[slot];
    if (!is_own(own, other_[slot])) weights[other_[slot]] += 1 - keep_[slot];
  }
  double sum = 0;
  for (const double weight : weights) sum += weight;
  if (!(sum > 0)) throw Error(ErrorCode::usage, "own: every item that can be drawn is the row's own");
  double place = static_cast<double>(random_bits(seed, Purpose::rare_negatives, index) >> 11) * 0x1p-53 * sum;
  std::uint32_t last = 0;
  for (std::uint32_t item = 0; item < weights.size(); ++item) {
    if (weights[item] == 0) continue;
    last = item;
    place -= weights[item];
    if (place < 0) break;
  }
  return last;
}

void PopularitySampler::draw(std::span<const std::int32_t> own, std::uint64_t seed, std::uint64_t index,
                             std::span<std::int32_t> items) const {
  for (std::size_t i = 0; i < items.size(); ++i)
    items[i] = static_cast<std::int32_t>(draw_one(own, seed, index + i));
}

}  // namespace chunkhit
