#include "pack/value_stats.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace chunkhit {
namespace {

constexpr std::uint32_t kMantissaBits = 23;
constexpr std::uint64_t kHashFactor = 0x9e3779b97f4a7c15;
constexpr double kMaxStored = 65'535;

/// The bounds of the values with these sign and exponent bits.
ValueHistogram::Bin range_of(std::uint32_t range, std::uint64_t count) {
  const std::uint32_t exponent = range & 255;
  const float near = std::bit_cast<float>(exponent << kMantissaBits);
  const float far = std::bit_cast<float>((exponent + 1) << kMantissaBits);
  return range < 256 ? ValueHistogram::Bin{near, far, count} : ValueHistogram::Bin{-far, -near, count};
}

}  // namespace

void ValueStats::add(float value, std::uint64_t count) {
  value += 0.0F;  // -0 and 0 are one value
  if (slots_.empty()) {
    fit(value);
    add_range(value, count);
    return;
  }
  std::size_t at = (std::bit_cast<std::uint32_t>(value) * kHashFactor) >> (64 - kSlotBits);
  while (slots_[at].count > 0 && slots_[at].value != value) at = (at + 1) % kSlots;
  if (slots_[at].count == 0) {
    fit(value);
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
  all_one_ = all_one_ && other.all_one_;
  for (std::size_t scale = 0; scale < kScales.size(); ++scale) {
    fits_[scale] = fits_[scale] && other.fits_[scale];
    largest_[scale] = std::max(largest_[scale], other.largest_[scale]);
  }
}

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

StoredValues ValueStats::stored() const {
  if (all_one_) return {ValueType::none, 1};
  for (std::size_t scale = 0; scale < kScales.size(); ++scale)
    if (fits_[scale]) return {largest_[scale] < 256 ? ValueType::u8 : ValueType::u16, kScales[scale]};
  return {ValueType::f32, 1};
}

void ValueStats::fit(float value) {
  all_one_ = all_one_ && value == 1;
  for (std::size_t scale = 0; scale < kScales.size(); ++scale) {
    if (!fits_[scale]) continue;
    const double number = std::round(static_cast<double>(value) / kScales[scale]);
    fits_[scale] =
        number >= 0 && number <= kMaxStored && static_cast<float>(number * kScales[scale]) == value;
    if (fits_[scale]) largest_[scale] = std::max(largest_[scale], static_cast<std::uint64_t>(number));
  }
}

void ValueStats::add_range(float value, std::uint64_t count) {
  ranges_[std::bit_cast<std::uint32_t>(value) >> kMantissaBits] += count;
}

void ValueStats::change_to_ranges() {
  ranges_.resize(kRanges);
  for (const Slot& slot : slots_)
    if (slot.count > 0) add_range(slot.value, slot.count);
  slots_ = {};
}

}  // namespace chunkhit
