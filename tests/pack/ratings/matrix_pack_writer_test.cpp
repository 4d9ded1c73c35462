#include "pack/ratings/matrix_pack_writer.h"

#include <gtest/gtest.h>

namespace chunkhit {
namespace {

PackStats stats(std::uint64_t nnz, std::uint64_t longest_row) {
  PackStats stats;
  stats.x = {nnz, longest_row};
  return stats;
}

constexpr std::uint64_t kMaxChunkBytes = std::uint64_t{1} << 27;

TEST(ChunkRows, ShortRowsFillTheLargestBlocks) {
  EXPECT_EQ(plan_chunk_rows(stats(1000 * 144, 9000), 1000, {26'744, 1, ValueType::u8, 0.5}), 1024u);
}

TEST(ChunkRows, LongRowsGiveFewer) {
  EXPECT_EQ(plan_chunk_rows(stats(1000 * 400, 9000), 1000, {26'744, 1, ValueType::u8, 0.5}), 512u);
  EXPECT_EQ(plan_chunk_rows(stats(1000 * 1500, 9000), 1000, {60'000, 1, ValueType::f32, 1}), 256u);
}

TEST(ChunkRows, TheLongestRowsFitTheContainer) {
  const std::uint64_t longest = 4'000'000;
  const std::uint64_t rows = plan_chunk_rows(stats(1000, longest), 1000, {5'000'000, 1, ValueType::f32, 1});
  EXPECT_LT(rows, 256u);
  EXPECT_LE(rows * longest * 9, kMaxChunkBytes);
}

TEST(ChunkRows, AnEmptyPackHasThem) { EXPECT_EQ(plan_chunk_rows({}, 0, {1, 1, ValueType::none, 1}), 1024u); }

}  // namespace
}  // namespace chunkhit
