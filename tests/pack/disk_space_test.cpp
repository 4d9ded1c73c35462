#include "pack/disk_space.h"

#include <gtest/gtest.h>

namespace chunkhit {
namespace {

const SampleShape kSample{100, 100, 3, Layout::nhwc};  // 30,000 bytes

ChunkPlan plan_of(std::uint64_t samples, bool hdf5, bool compressed) {
  ChunkPlanSpec spec;
  spec.sample_bytes = kSample.byte_count();
  spec.sample_count = samples;
  spec.hdf5 = hdf5;
  spec.compressed = compressed;
  spec.chunk_samples = 100;
  spec.part_bytes = 10 * 100 * 30'000;
  return plan_chunks(spec);
}

TEST(DiskSpace, CountsThePaddingOfTheLastChunkAndTheMetadataOfEachPart) {
  const SpaceNeed need = needed_space(plan_of(1'001, true, false), kSample, container("hdf5"), 1'001);
  EXPECT_EQ(need.bytes, 11u * 100 * 30'000 + 2u * (1 << 20));
  EXPECT_FALSE(need.is_minimum);
}

TEST(DiskSpace, CountsNoPaddingWhereAContainerHasNone) {
  EXPECT_EQ(needed_space(plan_of(1'001, false, false), kSample, container("shard"), 1'001).bytes,
            1'001u * 30'000);
}

TEST(DiskSpace, KnowsOnlyTheLeastOfWhatIsCompressed) {
  const SpaceNeed need = needed_space(plan_of(1'000, false, true), kSample, container("shard"), 1'000);
  EXPECT_EQ(need.bytes, 3'000'000u);
  EXPECT_EQ(space_text(need), "at least 3.0 MB");
}

TEST(DiskSpace, TakesRatingsAsTheyAreOrTheLeastOfThem) {
  EXPECT_EQ(space_text(needed_space(40'000'000, false)), "about 40.0 MB");
  EXPECT_EQ(space_text(needed_space(40'000'000, true)), "at least 4.0 MB");
}

TEST(DiskSpace, RefusesWhatCannotFitWithBothNumbers) {
  EXPECT_EQ(space_error({30'000'000, false}, 20'000'000), "needs about 30.0 MB, 20.0 MB are free");
  EXPECT_EQ(space_error({30'000'000, false}, 30'000'000), "");
  EXPECT_EQ(space_error({30'000'000, false}, 29'800'000), "") << "a few rows may be rejected";
}

}  // namespace
}  // namespace chunkhit
