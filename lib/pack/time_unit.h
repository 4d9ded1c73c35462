// What the times of ratings count.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace chunkhit {

enum class TimeUnit : std::uint8_t { seconds, milliseconds, microseconds, nanoseconds };
inline constexpr std::array<std::string_view, 4> kTimeUnitNames{"seconds", "milliseconds", "microseconds",
                                                                "nanoseconds"};

/// The unit that a time since 1970 has by its size: seconds below 1e11 (the year 5138), milliseconds below
/// 1e14, microseconds below 1e17. Counters of other things are seconds here.
[[nodiscard]] TimeUnit time_unit(std::int64_t time);

/// Gives a time in another unit than its size says, rounded down; what 64 bits do not hold
/// becomes their end.
[[nodiscard]] std::int64_t in_unit(std::int64_t time, TimeUnit unit);

/// Looks at the times of a run's inputs.
class TimeUnits {
 public:
  void add(std::span<const std::int64_t> times);
  /// Ends an input: its unit is that of most of its times. Those next to 0 have none.
  void end(const std::string& input);
  /// The unit of the first input that had times with one.
  [[nodiscard]] std::optional<TimeUnit> unit() const { return unit_; }
  /// What to say where an input had several units, or another one than the first; else empty.
  [[nodiscard]] const std::string& difference() const { return difference_; }

 private:
  std::array<std::uint64_t, kTimeUnitNames.size()> counts_{};  ///< of the input at hand
  std::optional<TimeUnit> unit_;
  std::string input_;  ///< that `unit_` is of
  std::string difference_;
};

}  // namespace chunkhit
