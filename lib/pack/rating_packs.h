// From all ratings to the rows of packs: rules, filters, split, columns, order of rows, types of values.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "pack/item_columns.h"
#include "pack/pack_rows.h"
#include "pack/rating_rules.h"
#include "pack/rating_split.h"
#include "pack/rating_steps.h"
#include "pack/rating_store.h"
#include "pack/value_stats.h"

namespace chunkhit {

/// What is wanted.
struct RatingPacksSpec {
  RatingRules rules{};
  RatingSplitSpec split{};
  ItemOrder item_order = ItemOrder::popularity;
  bool shuffles_rows = true;  ///< by seed; else users come as the input has them
  std::uint64_t seed = 0;
};

/// What Liang and others did with MovieLens-20M (Variational Autoencoders for Collaborative Filtering, 2018):
/// ratings above 3.5 become 1, users with 5 of them, 10,000 users held out twice, a fifth of their items
/// asked for. Who is held out is drawn by our seed, not by NumPy's.
[[nodiscard]] RatingPacksSpec vae_cf_spec();

/// Whether the ratings' times are looked at.
[[nodiscard]] bool needs_times(const RatingPacksSpec& spec);

/// The packs of a run.
struct RatingPacks {
  std::vector<StepCounts> steps;
  ValueHistogram values;  ///< of what the split divides
  StoredValues stored;
  std::unique_ptr<const RowSource> source;
  std::vector<PackRows> packs;  ///< train first
  [[nodiscard]] const ItemColumns& columns() const { return source->columns; }
};

/// The items that may be columns, and their order; by number.
struct ItemChoice {
  std::span<const std::uint32_t> sorted;                 ///< in the order of their ids; for ItemOrder::sorted
  std::optional<std::span<const std::uint32_t>> frozen;  ///< the columns of another pack, kNoItem allowed
};

/// Makes the packs of all that is in `store`, which is emptied. Needs memory for the rows, 8 bytes a rating
/// and 12 more where the split goes by time, or where `store` was spilled for a few buckets. The same for any
/// number of threads. `given` is for lists of users and given files only. Throws usage, bad_data
/// (DuplicateError; nothing is left), cannot_write.
[[nodiscard]] RatingPacks make_rating_packs(RatingStore& store, const RatingPacksSpec& spec,
                                            const ItemChoice& items, GivenParts given = {});

/// Bytes of a dense batch.
[[nodiscard]] constexpr std::uint64_t dense_batch_bytes(std::uint64_t rows, std::uint64_t columns,
                                                        std::uint64_t value_bytes) {
  return rows * columns * value_bytes;
}

}  // namespace chunkhit
