#include "chunk/chunk_plan.h"

#include <gtest/gtest.h>

#include "chunk/cache_advice.h"
#include "chunkhit/error.h"

namespace chunkhit {
namespace {

ChunkPlanSpec photos(std::uint64_t count) {
  ChunkPlanSpec spec;
  spec.sample_bytes = 64 * 64 * 3;
  spec.sample_count = count;
  return spec;
}

TEST(ChunkPlan, KeepsCompressedChunksWithinHdf5sDefaultCache) {
  ChunkPlanSpec spec = photos(100'000);
  spec.compressed = true;
  const ChunkPlan plan = plan_chunks(spec);
  EXPECT_EQ(plan.chunk_samples, 85u);  // floor(2^20 / 12,288)
  EXPECT_LE(plan.chunk_bytes, 1u << 20);
}

TEST(ChunkPlan, PutsUncompressedHdf5ChunksAboveEveryDefaultCache) {
  const ChunkPlan plan = plan_chunks(photos(100'000));
  EXPECT_GT(plan.chunk_bytes, 8u << 20);
  EXPECT_LE(plan.chunk_bytes, (8u << 20) + 12'288);
}

TEST(ChunkPlan, NeverMakesAChunkLargerThanTheSet) { EXPECT_EQ(plan_chunks(photos(10)).chunk_samples, 10u); }

TEST(ChunkPlan, FillsPartsWithWholeChunks) {
  ChunkPlanSpec spec = photos(100'000);
  spec.chunk_samples = 100;
  spec.part_bytes = 12'288 * 1'050;
  const ChunkPlan plan = plan_chunks(spec);
  EXPECT_EQ(plan.part_samples, 1'000u);
  EXPECT_EQ(plan.part_count, 100u);
  EXPECT_EQ(plan.chunk_count, 1'000u);
}

TEST(ChunkPlan, RefusesAChunkThatHdf5CannotHold) {
  ChunkPlanSpec spec = photos(1'000'000);
  spec.chunk_samples = 400'000;
  spec.part_bytes = 1ull << 40;
  EXPECT_THROW(static_cast<void>(plan_chunks(spec)), Error);
}

TEST(CacheAdvice, HoldsAWindowOfCompressedChunksWithASlotForEachChunk) {
  ChunkPlanSpec spec = photos(100'000);
  spec.compressed = true;
  const ChunkPlan plan = plan_chunks(spec);
  const CacheAdvice advice = advise_cache(plan, 1'000);
  EXPECT_EQ(advice.rdcc_nbytes, kWindowChunks * plan.chunk_bytes);
  EXPECT_GE(advice.rdcc_nslots, 1'000u);
}

TEST(CacheAdvice, PredictsHitsFromTheSharesThatFit) {
  ChunkPlanSpec spec = photos(100'000);
  spec.compressed = true;
  const ChunkPlan plan = plan_chunks(spec);
  const HitRates rates = predict_hit_rates(plan, 640, 64 * plan.chunk_bytes);
  EXPECT_DOUBLE_EQ(rates.sequential, 1 - 1.0 / 85);
  EXPECT_DOUBLE_EQ(rates.windowed, 1 - 1.0 / 85);
  EXPECT_DOUBLE_EQ(rates.random, 0.1);
}

TEST(CacheAdvice, LetsLargeUncompressedChunksBypassTheCache) {
  const ChunkPlan plan = plan_chunks(photos(100'000));
  EXPECT_TRUE(predict_hit_rates(plan, 100, advise_cache(plan, 100).rdcc_nbytes).bypass);
}

}  // namespace
}  // namespace chunkhit
