#include "pack/images/memory_plan.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace chunkhit {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;
/// Given, because other tests of this process, and sanitizers, leave it with any amount.
constexpr std::uint64_t kHeldBytes = 40 * kMiB;

MemoryPlan plan_for(std::uint32_t threads, std::uint64_t memory_bytes, const SampleShape& sample = {}) {
  const PackImagesSpec spec;
  PackImagesOptions options;
  options.threads = threads;
  options.memory_bytes = memory_bytes;
  ChunkPlan chunk;
  chunk.chunk_samples = 56;
  chunk.chunk_bytes = 8 * kMiB;
  return plan_memory(spec, options, sample, chunk, kHeldBytes);
}

std::uint64_t planned_bytes(const MemoryPlan& plan) {
  return plan.buffer_bytes + plan.threads * plan.kept_bytes + plan.decode_bytes;
}

TEST(MemoryPlan, PacksAPartForEveryFourThreads) {
  EXPECT_EQ(plan_for(1, 16384 * kMiB).parts, 1u);
  EXPECT_EQ(plan_for(7, 16384 * kMiB).parts, 1u);
  EXPECT_EQ(plan_for(8, 16384 * kMiB).parts, 2u);
  EXPECT_EQ(plan_for(64, 16384 * kMiB).parts, 16u);
}

TEST(MemoryPlan, PacksFewerPartsWhereMemoryIsShort) {
  for (const std::uint64_t memory : {1600 * kMiB, 2048 * kMiB}) {
    const MemoryPlan plan = plan_for(64, memory);
    EXPECT_GE(plan.parts, 1u);
    EXPECT_LT(plan.parts, 12u);
    EXPECT_GE(plan.buffer_bytes, plan.parts * 3 * 8 * kMiB);
    EXPECT_LE(planned_bytes(plan), memory);
  }
}

TEST(MemoryPlan, KeepsHalfForEachOfTwoDecoders) {
  SampleShape sample;
  sample.pairs = {{"depth", FieldRole::view}};
  EXPECT_EQ(plan_for(2, 2048 * kMiB, sample).kept_bytes, plan_for(2, 2048 * kMiB).kept_bytes / 2);
}

}  // namespace
}  // namespace chunkhit
