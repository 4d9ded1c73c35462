// Which values ratings have, and how they are kept without loss.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "types/value_type.h"

namespace chunkhit {

/// How often values occur: each by itself, or by ranges where there are more than kMaxDistinctValues.
struct ValueHistogram {
  struct Bin {
    float low = 0;
    float high = 0;  ///< the same as `low`, or where the range ends: a power of two, not in it
    std::uint64_t count = 0;
  };
  bool has_ranges = false;
  std::vector<Bin> bins;  ///< ascending, none empty
};

inline constexpr std::size_t kMaxDistinctValues = 1000;

/// How values are stored: as numbers that times `scale` give the value exactly.
struct StoredValues {
  ValueType type = ValueType::none;
  double scale = 1;
};

/// Gathers values. What comes out does not depend on the order, nor on how they were shared out among
/// objects that were added together.
class ValueStats {
 public:
  void add(float value, std::uint64_t count = 1);
  void add(const ValueStats& other);
  [[nodiscard]] ValueHistogram histogram() const;
  /// none where all values are 1; else the largest scale of 1, 0.5, 0.25, 0.2, 0.1, 0.05, 0.01 and 0.001 of
  /// which all values are whole multiples, 0 to 255 (u8) or to 65,535 (u16) times; else f32.
  [[nodiscard]] StoredValues stored() const;

 private:
  static constexpr std::array<double, 8> kScales{1, 0.5, 0.25, 0.2, 0.1, 0.05, 0.01, 0.001};
  static constexpr int kSlotBits = 12;
  static constexpr std::size_t kSlots = std::size_t{1}
                                        << kSlotBits;  // open addressing, at most a quarter full
  static constexpr std::size_t kRanges = 512;          // by sign and exponent

  struct Slot {
    float value = 0;
    std::uint64_t count = 0;  ///< 0: free
  };
  void fit(float value);
  void add_range(float value, std::uint64_t count);
  void change_to_ranges();

  std::vector<Slot> slots_ = std::vector<Slot>(kSlots);  ///< empty: there are ranges
  std::size_t distinct_ = 0;
  std::vector<std::uint64_t> ranges_;
  std::array<bool, kScales.size()> fits_{true, true, true, true, true, true, true, true};
  std::array<std::uint64_t, kScales.size()> largest_{};  ///< stored number
  bool all_one_ = true;
};

}  // namespace chunkhit
