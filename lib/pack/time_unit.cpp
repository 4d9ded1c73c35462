#include "pack/time_unit.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <limits>

namespace chunkhit {
namespace {

constexpr std::int64_t kEndOfSeconds = 100'000'000'000;
// Seconds to 1973. What is nearer to 0 stands for no time, or is a counter, and tells no unit.
constexpr std::int64_t kMinTime = 100'000'000;

std::string name_of(TimeUnit unit) { return std::string(kTimeUnitNames[static_cast<std::size_t>(unit)]); }

}  // namespace

TimeUnit time_unit(std::int64_t time) {
  std::size_t unit = 0;
  // Dividing, not multiplying the bound: -2^63 has no absolute value.
  for (; unit + 1 < kTimeUnitNames.size() && (time >= kEndOfSeconds || time <= -kEndOfSeconds); ++unit)
    time /= 1000;
  return static_cast<TimeUnit>(unit);
}

std::int64_t in_unit(std::int64_t time, TimeUnit unit) {
  constexpr std::array<std::int64_t, 4> kFactors{1, 1000, 1'000'000, 1'000'000'000};
  const int steps = static_cast<int>(unit) - static_cast<int>(time_unit(time));
  const std::int64_t factor = kFactors[static_cast<std::size_t>(std::abs(steps))];
  if (steps < 0) return time / factor - (time % factor < 0 ? 1 : 0);
  std::int64_t scaled = 0;
  if (!__builtin_mul_overflow(time, factor, &scaled)) return scaled;
  return time < 0 ? std::numeric_limits<std::int64_t>::min() : std::numeric_limits<std::int64_t>::max();
}

void TimeUnits::add(std::span<const std::int64_t> times) {
  for (const std::int64_t time : times)
    if (time >= kMinTime || time <= -kMinTime) ++counts_[static_cast<std::size_t>(time_unit(time))];
}

void TimeUnits::end(const std::string& input) {
  std::string units;
  for (std::size_t unit = 0; unit < counts_.size(); ++unit)
    if (counts_[unit] > 0) units.append(units.empty() ? "" : " and ").append(kTimeUnitNames[unit]);
  const auto unit = static_cast<TimeUnit>(std::ranges::max_element(counts_) - counts_.begin());
  counts_ = {};
  if (units.empty()) return;
  if (difference_.empty() && units.find(' ') != std::string::npos)
    difference_ = input + ": times are " + units;
  if (!unit_) {
    unit_ = unit;
    input_ = input;
  } else if (unit != *unit_ && difference_.empty()) {
    difference_ = input + ": times are " + name_of(unit) + ", those of " + input_ + " are " + name_of(*unit_);
  }
}

}  // namespace chunkhit
