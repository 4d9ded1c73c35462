// The rows of a pack in their final order, with the pack's columns.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "chunkhit/sparse_spec.h"
#include "ratings/rating_rules.h"
#include "ratings/rating_split.h"
#include "ratings/rating_store.h"
#include "types/csr_rows.h"

namespace chunkhit {

inline constexpr std::uint32_t kNoColumn = UINT32_MAX;
inline constexpr std::uint32_t kNoItem = UINT32_MAX;

/// The columns; all packs of a split share them.
struct ItemColumns {
  std::vector<std::uint32_t> items;    ///< number of the item, by column; kNoItem: the input has not this one
  std::vector<std::uint32_t> columns;  ///< column of each item; kNoColumn: not in the packs
  std::vector<std::uint64_t> counts;   ///< ratings for training, by column
};

/// Makes columns of all items with ratings for training (`counts`, by item). `sorted`: the items in the order
/// of their ids; may hold more than those; for ItemOrder::sorted only.
[[nodiscard]] ItemColumns order_items(std::span<const std::uint32_t> counts, ItemOrder order,
                                      std::span<const std::uint32_t> sorted);

/// Makes the columns that another pack has: `frozen` has the item of each, which may be one that the input
/// has not, kNoItem included. Throws bad_data when an item is there twice.
[[nodiscard]] ItemColumns reuse_items(std::span<const std::uint32_t> counts,
                                      std::span<const std::uint32_t> frozen);

/// What the rows of all packs of a run are made of.
struct RowSource {
  CleanRows rows;
  LiveRatings live;
  RatingSplit split;
  ItemColumns columns;
  bool has_values = false;      ///< there are values other than 1
  bool has_times = false;       ///< of the ratings, which the packs keep
  std::int64_t time_scale = 1;  ///< times of `rows` are multiplied by it, those of packs are not
  bool has_repeats = false;     ///< a row may have an item several times
};

/// An entry of a row: the column · 2^32 + the rating's index in the user's row, or, where no times are kept,
/// the bits of its value; sorts by column. A value that goes along need not be fetched again.
using RowEntry = std::uint64_t;

/// Makes rows; keeps buffers, so each thread has its own.
class UserRows {
 public:
  explicit UserRows(const RowSource& source) : source_(source) {}
  /// Makes the user's rows for one pack, not sorted.
  void make(const RatingRow& row, Split pack);
  /// How many entries x will have, where all that is live of every row is for training, and not more is
  /// asked.
  [[nodiscard]] std::uint64_t count_whole(const RatingRow& row) const;
  [[nodiscard]] std::vector<RowEntry>& x() { return x_; }
  [[nodiscard]] std::vector<RowEntry>& held_out() { return held_out_; }
  /// Ratings of the pack's split that are left out, because their item is none of the columns.
  [[nodiscard]] std::uint64_t unseen() const { return unseen_; }
  /// Whether the pack has the user: with x, and but for training with held_out.
  [[nodiscard]] bool is_in_pack() const {
    return !x_.empty() && (pack_ == Split::train || !held_out_.empty());
  }
  /// Whether ratings of the user belong to the pack's split, be they left out or not.
  [[nodiscard]] bool is_concerned() const { return concerned_; }

 private:
  void make_whole(const RatingRow& row);
  void make_held_out_user(const RatingRow& row);
  void make_from_parts(const RatingRow& row);
  void add(const RatingRow& row, std::uint32_t index, std::vector<RowEntry>& to) const;
  [[nodiscard]] std::uint32_t column_of(const RatingRow& row, std::uint32_t index) const {
    return source_.columns.columns[row.items[index]];
  }

  const RowSource& source_;
  Split pack_ = Split::train;
  std::uint64_t unseen_ = 0;
  bool concerned_ = false;
  std::vector<RowEntry> x_;
  std::vector<RowEntry> held_out_;
  std::vector<std::uint32_t> entries_;
  std::vector<Split> splits_;
  std::vector<std::uint32_t> items_;
  std::vector<std::uint8_t> asked_;
};

/// Lists the entries of a row that are live.
void list_live(const RatingRow& row, const LiveRatings& live, std::vector<std::uint32_t>& entries);

/// How many entries a matrix has.
struct MatrixStats {
  std::uint64_t nnz = 0;
  std::uint64_t longest_row = 0;
};

/// What is in a pack, and what of its split is not.
struct PackStats {
  MatrixStats x;
  MatrixStats held_out;
  std::uint64_t unseen_ratings = 0;    ///< left out: their items have no ratings for training
  std::uint64_t users_left_out = 0;    ///< held out, but nothing is left that is given, or that is asked for
  std::uint64_t ratings_left_out = 0;  ///< ratings of the pack's split by these users, of items with a column
};

/// The users of a pack, in the order of its rows.
struct PackUsers {
  Split split = Split::train;
  std::string name;  ///< "train", "validation", "test"; empty without a split
  std::vector<std::uint32_t> users;
  PackStats stats;
};

/// One pack: its rows are made when they are asked for.
class PackRows {
 public:
  /// `source` outlives this object.
  PackRows(PackUsers users, const RowSource& source);
  /// Users' numbers, by row.
  [[nodiscard]] std::span<const std::uint32_t> users() const { return users_.users; }
  [[nodiscard]] std::uint64_t row_count() const { return users_.users.size(); }
  [[nodiscard]] const std::string& name() const { return users_.name; }
  [[nodiscard]] bool has_held_out() const { return users_.split != Split::train; }
  [[nodiscard]] const PackStats& stats() const { return users_.stats; }
  /// Makes the rows [first, end): columns ascending, equal ones by time; values empty where all ratings of
  /// the run are 1, times where they are not kept; `held_out` has no rows where the pack has none. Several
  /// threads may, each with its own targets. Throws cannot_write where rows on disk cannot be read back.
  void fill(std::uint64_t first, std::uint64_t end, CsrRows& x, CsrRows& held_out) const;

 private:
  friend void write_rows_to_disk(const RowSource& source, const RatingStoreSpec& spec,
                                 std::vector<PackRows>& packs);
  void fill_from_memory(std::uint64_t first, std::uint64_t end, CsrRows& x, CsrRows& held_out) const;

  PackUsers users_;
  const RowSource& source_;
  std::unique_ptr<RatingStore> x_on_disk_;  ///< rows as users, columns as items
  std::unique_ptr<RatingStore> held_out_on_disk_;
};

/// Rewrites spilled rows by their position in the packs, so that `fill` finds them together.
void write_rows_to_disk(const RowSource& source, const RatingStoreSpec& spec, std::vector<PackRows>& packs);

}  // namespace chunkhit
