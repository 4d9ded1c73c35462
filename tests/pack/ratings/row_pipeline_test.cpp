#include "pack/ratings/row_pipeline.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "ratings/rating_packs.h"
#include "small_ratings.h"

namespace chunkhit {
namespace {

/// Ratings of user n: n % 5 + 1 of 6 items.
RatingPacks packs(std::uint32_t user_count) {
  std::vector<Rating> ratings;
  for (std::uint32_t user = 0; user < user_count; ++user)
    for (std::uint32_t item = 0; item <= user % 5; ++item) ratings.push_back({user, item});
  RatingStore store({});
  append(store, ratings);
  return make_rating_packs(store, {}, {});
}

/// Entries of each part where a part may have so many of them.
std::vector<std::uint64_t> entries_of_parts(const RatingPacks& made, std::uint64_t piece_rows,
                                            std::uint64_t max_entries) {
  std::vector<std::uint64_t> entries;
  std::uint64_t next_row = 0;
  const auto append = [&](const RowPiece& piece) {
    EXPECT_EQ(piece.first_row, next_row);
    next_row += piece.row_count;
    EXPECT_LE(piece.part_index, entries.size());
    if (piece.part_index == entries.size()) entries.push_back(0);
    entries[piece.part_index] += piece.x.nnz();
  };
  EXPECT_TRUE(run_row_job({.rows = made.packs[0],
                           .piece_rows = piece_rows,
                           .shape = {6, 1, ValueType::none, 1},
                           .part_bytes = UINT64_MAX,
                           .max_part_entries = max_entries,
                           .threads = 2,
                           .append = append}));
  EXPECT_EQ(next_row, made.packs[0].row_count());
  return entries;
}

// An AnnData part counts its entries with 32 bits: what is more begins another part.
TEST(RowPipeline, BeginsAPartWhereTheEntriesOfOneAreTooMany) {
  const RatingPacks made = packs(1000);
  EXPECT_EQ(entries_of_parts(made, 7, UINT64_MAX), (std::vector<std::uint64_t>{3000}));
  EXPECT_EQ(entries_of_parts(made, 7, 3000), (std::vector<std::uint64_t>{3000}));
  for (const std::uint64_t max_entries : {2999, 100, 35, 5}) {
    const std::vector<std::uint64_t> entries = entries_of_parts(made, max_entries < 35 ? 1 : 7, max_entries);
    EXPECT_GE(entries.size(), 3000 / max_entries);
    std::uint64_t all = 0;
    for (const std::uint64_t of_part : entries) {
      EXPECT_LE(of_part, max_entries);
      all += of_part;
    }
    EXPECT_EQ(all, 3000u);
  }
}

}  // namespace
}  // namespace chunkhit
