// One user's ratings → the user's rows in a pack: what is given, and what is held out.
#pragma once

#include <cstdint>
#include <vector>

#include "pack/item_columns.h"
#include "pack/rating_rows.h"
#include "pack/rating_split.h"
#include "pack/rating_steps.h"
#include "pack/row_store.h"

namespace chunkhit {

/// What the rows of all packs of a run are made of.
struct RowSource {
  RowStore rows;
  LiveRatings live;
  RatingSplit split;
  ItemColumns columns;
  bool has_values = false;  ///< there are values other than 1
};

/// An entry of a row: the column · 2^32 + the bits of its value as f32; sorts by column.
using RowEntry = std::uint64_t;

/// Makes rows; keeps buffers, so each thread has its own.
class UserRows {
 public:
  explicit UserRows(const RowSource& source) : source_(source) {}
  /// Makes the user's rows for one pack, not sorted.
  void make(const RatingRow& row, Part pack);
  /// How many entries x will have, where all that is live of every row is for training, and not more is
  /// asked.
  [[nodiscard]] std::uint64_t count_whole(const RatingRow& row) const;
  [[nodiscard]] std::vector<RowEntry>& x() { return x_; }
  [[nodiscard]] std::vector<RowEntry>& held_out() { return held_out_; }
  /// Ratings of the pack's part that are left out, because their item is none of the columns.
  [[nodiscard]] std::uint64_t unseen() const { return unseen_; }
  /// Whether the pack has the user: with x, and but for training with held_out.
  [[nodiscard]] bool is_in_pack() const {
    return !x_.empty() && (pack_ == Part::train || !held_out_.empty());
  }
  /// Whether ratings of the user belong to the pack's part, be they left out or not.
  [[nodiscard]] bool is_concerned() const { return concerned_; }

 private:
  void choose_live(const RatingRow& row);
  void make_whole(const RatingRow& row);
  void make_held_out_user(const RatingRow& row);
  void make_from_parts(const RatingRow& row);
  void add(const RatingRow& row, std::uint32_t index, std::vector<RowEntry>& to) const;
  [[nodiscard]] std::uint32_t column_of(const RatingRow& row, std::uint32_t index) const {
    return source_.columns.columns[row.items[index]];
  }

  const RowSource& source_;
  Part pack_ = Part::train;
  std::uint64_t unseen_ = 0;
  bool concerned_ = false;
  std::vector<RowEntry> x_;
  std::vector<RowEntry> held_out_;
  std::vector<std::uint32_t> entries_;
  std::vector<Part> parts_;
  std::vector<std::uint32_t> items_;
  std::vector<std::uint8_t> asked_;
};

/// Lists the entries of a row that are live.
void list_live(const RatingRow& row, const LiveRatings& live, std::vector<std::uint32_t>& entries);

}  // namespace chunkhit
