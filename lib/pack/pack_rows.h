// The rows of a pack in their final order, with the pack's columns.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pack/rating_split.h"
#include "pack/rating_store.h"
#include "pack/user_rows.h"
#include "types/csr_rows.h"

namespace chunkhit {

/// How many entries a matrix has.
struct MatrixStats {
  std::uint64_t nnz = 0;
  std::uint64_t longest_row = 0;
};

/// What is in a pack, and what of its part is not.
struct PackStats {
  MatrixStats x;
  MatrixStats held_out;
  std::uint64_t unseen_ratings = 0;  ///< left out: their items have no ratings for training
  std::uint64_t users_left_out = 0;  ///< held out, but nothing is left that is given, or that is asked for
};

/// The users of a pack, in the order of its rows.
struct PackUsers {
  Part part = Part::train;
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
  [[nodiscard]] bool has_held_out() const { return users_.part != Part::train; }
  [[nodiscard]] const PackStats& stats() const { return users_.stats; }
  /// Makes the rows [first, end): columns ascending; values empty where all ratings of the run are 1;
  /// `held_out` has no rows where the pack has none. Several threads may, each with its own targets. Throws
  /// cannot_write where rows on disk cannot be read back.
  void fill(std::uint64_t first, std::uint64_t end, CsrRows& x, CsrRows& held_out) const;

 private:
  friend void write_rows_to_disk(const RowSource& source, const RatingStoreSpec& spec,
                                 std::vector<PackRows>& packs);
  void fill_from_memory(std::uint64_t first, std::uint64_t end, CsrRows& x, CsrRows& held_out) const;

  PackUsers users_;
  const RowSource& source_;
  std::unique_ptr<RatingStore> x_on_disk_;  ///< by row and column
  std::unique_ptr<RatingStore> held_out_on_disk_;
};

/// Rewrites spilled rows by their place in the packs, so that `fill` finds them together.
void write_rows_to_disk(const RowSource& source, const RatingStoreSpec& spec, std::vector<PackRows>& packs);

}  // namespace chunkhit
