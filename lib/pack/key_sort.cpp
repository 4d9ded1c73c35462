#include "pack/key_sort.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace chunkhit {
namespace {

/// Below this, comparing is faster than counting digits.
constexpr std::size_t kFewestToCount = 64;
constexpr int kDigitBits = 8;
constexpr std::size_t kDigits = 1 << kDigitBits;

bool is_before(std::uint64_t a, std::uint64_t b) { return a >> 32 < b >> 32; }

/// Moves the keys in the order of one digit.
void sort_by_digit(std::span<const std::uint64_t> from, int shift, std::uint64_t* to) {
  std::array<std::uint32_t, kDigits> next{};
  for (const std::uint64_t key : from) ++next[(key >> shift) % kDigits];
  std::uint32_t sum = 0;
  for (std::uint32_t& begin : next) {
    const std::uint32_t count = begin;
    begin = sum;
    sum += count;
  }
  for (const std::uint64_t key : from) to[next[(key >> shift) % kDigits]++] = key;
}

}  // namespace

void KeySort::sort(std::span<std::uint64_t> keys) {
  if (std::is_sorted(keys.begin(), keys.end(), is_before)) return;
  if (keys.size() < kFewestToCount || keys.size() > UINT32_MAX) {
    std::stable_sort(keys.begin(), keys.end(), is_before);
    return;
  }
  std::uint64_t differing = 0;
  for (const std::uint64_t key : keys) differing |= key ^ keys[0];
  other_.resize(std::max(other_.size(), keys.size()));
  std::span<std::uint64_t> from = keys;
  std::span<std::uint64_t> to(other_.data(), keys.size());
  for (int shift = 32; shift < 64; shift += kDigitBits) {
    if ((differing >> shift) % kDigits == 0) continue;
    sort_by_digit(from, shift, to.data());
    std::swap(from, to);
  }
  if (from.data() != keys.data()) std::copy(from.begin(), from.end(), keys.begin());
}

}  // namespace chunkhit
