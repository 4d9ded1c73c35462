#include "chunk/chunk_plan.h"

#include <gtest/gtest.h>

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
  const ChunkPlan plan = plan_chunks(photos(683 * 100));
  EXPECT_EQ(plan.chunk_samples, 683u);  // floor(2^23 / 12,288) + 1
  EXPECT_GT(plan.chunk_bytes, 8u << 20);
}

TEST(ChunkPlan, BalancesHdf5ChunksSoThatTheLastIsNearlyFull) {
  const ChunkPlan raw = plan_chunks(photos(2'275));  // 683 a chunk would leave 2/3 of a fourth one empty
  EXPECT_EQ(raw.chunk_samples, 759u);
  EXPECT_EQ(raw.chunk_count, 3u);
  ChunkPlanSpec spec = photos(2 * 85 + 10);
  spec.compressed = true;
  const ChunkPlan compressed = plan_chunks(spec);
  EXPECT_EQ(compressed.chunk_samples, 60u);
  EXPECT_EQ(compressed.chunk_count, 3u);
}

TEST(ChunkPlan, NeverLeavesASizeRuleForBalance) {
  for (const std::uint64_t count : {1ull, 84ull, 86ull, 682ull, 684ull, 1'365ull, 1'366ull, 99'999ull}) {
    ChunkPlanSpec spec = photos(count);
    const ChunkPlan raw = plan_chunks(spec);
    EXPECT_TRUE(raw.chunk_bytes > 8u << 20 || raw.chunk_count == 1) << count;
    EXPECT_LT(raw.chunk_count * raw.chunk_samples - count, raw.chunk_count) << count;
    spec.compressed = true;
    const ChunkPlan compressed = plan_chunks(spec);
    EXPECT_LE(compressed.chunk_bytes, 1u << 20) << count;
    EXPECT_LT(compressed.chunk_count * compressed.chunk_samples - count, compressed.chunk_count) << count;
  }
}

TEST(ChunkPlan, TakesTheNumberOfSamplesThatTheUserGives) {
  ChunkPlanSpec spec = photos(2'275);
  spec.chunk_samples = 683;
  EXPECT_EQ(plan_chunks(spec).chunk_samples, 683u);
}

TEST(ChunkPlan, SaysWhatLimitedTheChunk) {
  EXPECT_EQ(plan_chunks(photos(3)).reason, "all samples in one chunk");
  ChunkPlanSpec spec = photos(3);
  spec.part_bytes = 2 * 12'288;
  EXPECT_EQ(plan_chunks(spec).reason, "as many as `part_bytes` holds");
  spec.sample_bytes = 3 << 20;
  spec.part_bytes = 1 << 30;
  spec.compressed = true;
  EXPECT_EQ(plan_chunks(spec).reason, "one sample, which is over 1 MiB");
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

TEST(ChunkPlan, RefusesAChunkThatTheContainerCannotHold) {
  ChunkPlanSpec spec = photos(1'000'000);
  spec.max_chunk_bytes = 12'288 * 1'000;
  spec.chunk_samples = 1'000;
  EXPECT_EQ(plan_chunks(spec).chunk_samples, 1'000u);
  spec.chunk_samples = 1'001;
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
  const CachePrediction rates = predict_cache(plan, 640, {64 * plan.chunk_bytes});
  EXPECT_DOUBLE_EQ(rates.sequential, 1 - 1.0 / 85);
  EXPECT_DOUBLE_EQ(rates.windowed, 1 - 1.0 / 85);
  EXPECT_DOUBLE_EQ(rates.random, 0.1);
}

TEST(CacheAdvice, NeverPredictsMoreHitsThanReadingInSequenceHas) {
  ChunkPlanSpec spec = photos(100'000);
  spec.compressed = true;
  spec.chunk_samples = 2;
  const ChunkPlan plan = plan_chunks(spec);
  EXPECT_DOUBLE_EQ(predict_cache(plan, 100, {99 * plan.chunk_bytes}).random, 0.5);
}

TEST(CacheAdvice, LetsLargeUncompressedChunksBypassTheCache) {
  const ChunkPlan plan = plan_chunks(photos(100'000));
  EXPECT_TRUE(predict_cache(plan, 100, advise_cache(plan, 100)).bypass);
}

}  // namespace
}  // namespace chunkhit
