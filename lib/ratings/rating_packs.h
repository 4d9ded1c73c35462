// From all ratings to the rows of packs: rules, split, columns, order of rows, types of values.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "chunkhit/pack_info.h"
#include "chunkhit/sparse_spec.h"
#include "ratings/pack_rows.h"
#include "ratings/rating_rules.h"
#include "ratings/rating_split.h"
#include "ratings/rating_store.h"
#include "types/csr_rows.h"

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

/// Which types hold all values that were added.
class ValueFit {
 public:
  static constexpr std::array<double, 8> kScales{1, 0.5, 0.25, 0.2, 0.1, 0.05, 0.01, 0.001};
  /// Whether each scale fits, and the largest number that would be stored.
  struct Scale {
    bool fits = true;
    std::uint64_t largest = 0;
  };
  void add(float value);
  void add(const ValueFit& other);
  /// none where all values are 1; else the largest of kScales of which all values are whole multiples, 0 to
  /// 255 (u8) or to 65,535 (u16) times; else f32.
  [[nodiscard]] StoredValues stored() const;

 private:
  bool all_one_ = true;
  std::array<Scale, kScales.size()> scales_{};
};

/// Gathers values. What comes out does not depend on the order, nor on how they were shared out among
/// objects that were added together.
class ValueStats {
 public:
  void add(float value, std::uint64_t count = 1) {
    value += 0.0F;  // -0 and 0 are one value
    if (Slot* const slot = slots_.empty() ? nullptr : &slots_[slot_of(value)];
        slot && slot->count > 0 && slot->value == value)
      slot->count += count;
    else
      add_other(value, count);
  }
  void add(const ValueStats& other);
  /// Adds values of a range by its lower end, as a histogram with ranges has it; what fits is not known then.
  void add_from_range(float low, std::uint64_t count);
  [[nodiscard]] ValueHistogram histogram() const;
  [[nodiscard]] const ValueFit& fit() const { return fit_; }

 private:
  static constexpr int kSlotBits = 12;
  static constexpr std::size_t kSlots = std::size_t{1}
                                        << kSlotBits;  // open addressing, at most a quarter full
  static constexpr std::size_t kRanges = 512;          // by sign and exponent

  struct Slot {
    float value = 0;
    std::uint64_t count = 0;  ///< 0: free
  };
  static std::size_t slot_of(float value) {
    constexpr std::uint64_t kHashFactor = 0x9e3779b97f4a7c15;
    return (std::bit_cast<std::uint32_t>(value) * kHashFactor) >> (64 - kSlotBits);
  }
  /// Adds a value that is not the first one with its hash.
  void add_other(float value, std::uint64_t count);
  void add_range(float value, std::uint64_t count);
  void change_to_ranges();

  std::vector<Slot> slots_ = std::vector<Slot>(kSlots);  ///< empty: there are ranges
  std::size_t distinct_ = 0;
  std::vector<std::uint64_t> ranges_;
  ValueFit fit_;
};

/// Whether the ratings' times are looked at.
[[nodiscard]] bool needs_times(const RatingPacksSpec& spec);

/// The packs of a run.
struct RatingPacks {
  std::vector<PackStep> steps;
  ValueHistogram values;  ///< values of the ratings that the split divides
  StoredValues stored;
  std::unique_ptr<const RowSource> source;
  std::vector<PackRows> packs;              ///< train first
  std::vector<std::uint32_t> unseen_items;  ///< items that training lacks, by number; only if asked for
  [[nodiscard]] const ItemColumns& columns() const { return source->columns; }
};

/// The items that may be columns, and their order; by number.
struct ItemChoice {
  std::span<const std::uint32_t> sorted;  ///< items in the order of their ids; for ItemOrder::sorted
  std::optional<std::span<const std::uint32_t>> frozen;  ///< the columns of another pack, kNoItem allowed
  std::span<const std::uint32_t> unseen;  ///< beside these the split divides; they are no columns
  bool lists_unseen = false;              ///< whether `unseen_items` are found
};

/// A rating, as the rules left it, that the spec's type of values cannot hold.
class MisfitError : public Error {
 public:
  MisfitError(std::uint32_t user_number, std::uint32_t item_number, float found);
  std::uint32_t user;  ///< the lowest one; and of this user
  std::uint32_t item;  ///< the first one
  float rating;
};

/// Makes the packs of all that is in `store`, which is emptied. Needs memory for the rows, 8 bytes a rating
/// and 12 more where the split goes by time or times are kept, or where `store` was spilled for a few
/// buckets. The same for any number of threads. `given` is for lists of users and given files only. Times of
/// `store` and of the spec are multiplied by `time_scale`, those of the packs are not. Throws usage, bad_data
/// (DuplicateError; MisfitError; nothing is left), cannot_write.
[[nodiscard]] RatingPacks make_rating_packs(RatingStore& store, const RatingPacksSpec& spec,
                                            const ItemChoice& items, GivenSplit given = {},
                                            std::int64_t time_scale = 1);

/// Bytes of a dense batch.
[[nodiscard]] constexpr std::uint64_t dense_batch_bytes(std::uint64_t rows, std::uint64_t columns,
                                                        std::uint64_t value_bytes) {
  return rows * columns * value_bytes;
}

}  // namespace chunkhit
