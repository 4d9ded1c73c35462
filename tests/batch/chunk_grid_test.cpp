#include <gtest/gtest.h>

#include <vector>

#include "batch/epoch_order.h"
#include "chunkhit/error.h"

namespace chunkhit {
namespace {

using Counts = std::vector<std::uint64_t>;

void expect_locations(const ChunkGrid& grid, const Counts& counts) {
  ASSERT_EQ(grid.chunk_count(), counts.size());
  std::uint64_t sample = 0;
  for (std::uint64_t chunk = 0; chunk < counts.size(); ++chunk) {
    ASSERT_EQ(grid.first_sample(chunk), sample) << chunk;
    ASSERT_EQ(grid.sample_count_of(chunk), counts[chunk]) << chunk;
    for (std::uint64_t in_chunk = 0; in_chunk < counts[chunk]; ++in_chunk, ++sample)
      ASSERT_EQ(grid.find(sample), (ChunkGrid::Location{chunk, in_chunk})) << sample;
  }
  EXPECT_EQ(grid.sample_count(), sample);
  EXPECT_EQ(grid.first_sample(counts.size()), sample);
}

TEST(ChunkGrid, FindsEverySampleOfEvenAndUnevenChunks) {
  for (const Counts& counts :
       {Counts{1}, Counts{7}, Counts{4, 4, 4}, Counts{4, 4, 1}, Counts{1, 4, 4}, Counts{4, 2, 4, 4, 3, 1, 4},
        Counts{5, 4, 3, 2, 1}, Counts{4, 9, 9, 4, 4, 100, 4}})
    expect_locations(ChunkGrid(counts), counts);
}

TEST(ChunkGrid, FindsTheSamplesBetweenEmptyChunks) {
  for (const Counts& counts :
       {Counts{0, 1, 0}, Counts{0, 0, 4, 4, 0, 4}, Counts{4, 0, 0, 2, 0, 4, 0}, Counts{0, 0, 0, 7, 9}})
    expect_locations(ChunkGrid(counts, true), counts);
  EXPECT_THROW(ChunkGrid(Counts{4, 0, 4}), Error);
}

TEST(ChunkGrid, TellsWhatMostChunksHold) {
  EXPECT_EQ(ChunkGrid(Counts{9, 4, 4, 9, 4}).chunk_samples(), 4u);
  EXPECT_EQ(ChunkGrid(Counts{9}).chunk_samples(), 9u);
  EXPECT_EQ(ChunkGrid(Counts{9, 4, 4, 9, 4}).typical_samples(), 4u);
  EXPECT_EQ(ChunkGrid(Counts{312, 298, 305, 301, 299, 310, 296, 3}).typical_samples(), 265u);
}

TEST(ChunkGrid, OfNothingIsEmpty) {
  const ChunkGrid grid{Counts{}};
  EXPECT_EQ(grid.chunk_count(), 0u);
  EXPECT_EQ(grid.sample_count(), 0u);
  EXPECT_EQ(grid.first_sample(0), 0u);
}

TEST(ChunkGrid, ReordersItsChunks) {
  const Counts counts{4, 2, 4, 4, 3, 1, 4, 4, 8};
  const Permutation visited(counts.size(), 3);
  Counts expected;
  for (std::uint64_t slot = 0; slot < counts.size(); ++slot) expected.push_back(counts[visited(slot)]);
  ASSERT_NE(expected, counts);
  expect_locations(ChunkGrid(counts).reordered(visited), expected);
}

TEST(ChunkGrid, RejectsAChunkOfNoSamplesAndSumsThatOverflow) {
  EXPECT_THROW(ChunkGrid(Counts{4, 0, 4}), Error);
  EXPECT_THROW(ChunkGrid(Counts{~std::uint64_t{0}, 1}), Error);
}

}  // namespace
}  // namespace chunkhit
