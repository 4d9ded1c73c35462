#include "batch/epoch_batches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "batch/mixture.h"

namespace chunkhit {
namespace {

using Positions = std::vector<std::uint64_t>;

constexpr std::uint64_t kSeed = 7;
constexpr std::uint64_t kEpoch = 2;

BatchSpec spec_of(std::uint64_t batch_size, std::uint32_t rank = 0, std::uint32_t world_size = 1) {
  BatchSpec spec;
  spec.batch_size = batch_size;
  spec.rank = rank;
  spec.world_size = world_size;
  return spec;
}

Positions positions_of(const EpochBatches& batches, std::uint64_t index) {
  const EpochBatches::Batch batch = batches.batch(index);
  Positions positions;
  for (std::uint64_t i = 0; i < batch.size; ++i) positions.push_back(batches.position(batch, i));
  return positions;
}

std::vector<Positions> all_of(const EpochBatches& batches) {
  std::vector<Positions> all;
  for (std::uint64_t index = 0; index < batches.batch_count(); ++index)
    all.push_back(positions_of(batches, index));
  return all;
}

std::vector<Positions> all_of(std::uint64_t sample_count, const BatchSpec& spec,
                              std::uint64_t first_position = 0) {
  return all_of(EpochBatches(sample_count, spec, kSeed, kEpoch, first_position));
}

/// Calls `check(sample_count, spec)` for every combination of small sizes; the rank is 0.
template <class Check>
void for_each_case(const Check& check) {
  for (const std::uint64_t sample_count : {1u, 2u, 3u, 7u, 12u, 24u, 25u, 61u})
    for (const std::uint64_t batch_size : {1u, 2u, 3u, 5u, 100u})
      for (const std::uint32_t world_size : {1u, 2u, 3u, 4u})
        for (const std::uint32_t echo : {1u, 2u, 3u})
          for (const RankRemainder rank_remainder : {RankRemainder::pad, RankRemainder::drop})
            for (const bool drop_last : {false, true}) {
              const BatchSpec spec{batch_size, 0, world_size, rank_remainder, drop_last, echo};
              SCOPED_TRACE(testing::Message()
                           << sample_count << " samples, batch " << batch_size << ", ranks " << world_size
                           << ", echo " << echo << ", drop " << (rank_remainder == RankRemainder::drop)
                           << ", drop_last " << drop_last);
              check(sample_count, spec);
              if (testing::Test::HasFatalFailure()) return;
            }
}

TEST(EpochBatches, SharesAGlobalBatchAmongRanksInTheirOrder) {
  EXPECT_EQ(all_of(10, spec_of(2, 0, 2)), (std::vector<Positions>{{0, 1}, {4, 5}, {8}}));
  EXPECT_EQ(all_of(10, spec_of(2, 1, 2)), (std::vector<Positions>{{2, 3}, {6, 7}, {9}}));
}

TEST(EpochBatches, PadsFromTheBeginningAndDropsTheEnd) {
  BatchSpec spec = spec_of(4, 2, 3);
  EXPECT_EQ(all_of(19, spec), (std::vector<Positions>{{8, 9, 10, 11}, {18, 0, 1}}));
  spec.rank_remainder = RankRemainder::drop;
  EXPECT_EQ(all_of(19, spec), (std::vector<Positions>{{8, 9, 10, 11}, {16, 17}}));
  spec.drop_last = true;
  EXPECT_EQ(all_of(19, spec), (std::vector<Positions>{{8, 9, 10, 11}}));
}

// What torch's DistributedSampler does: no rank goes without, however few samples there are.
TEST(EpochBatches, GivesEachRankAPlaceOfASampleCountBelowTheWorldSize) {
  for (std::uint32_t rank = 0; rank < 5; ++rank)
    EXPECT_EQ(all_of(2, spec_of(4, rank, 5)), (std::vector<Positions>{{rank % 2}})) << rank;
  BatchSpec spec = spec_of(4, 1, 5);
  spec.rank_remainder = RankRemainder::drop;
  EXPECT_TRUE(all_of(2, spec).empty());
}

TEST(EpochBatches, HasNoneOfNoSamples) {
  EXPECT_EQ(EpochBatches(0, spec_of(4), kSeed, kEpoch).batch_count(), 0u);
  EXPECT_EQ(EpochBatches(9, spec_of(4), kSeed, kEpoch, 9).batch_count(), 0u);
}

TEST(EpochBatches, TakesABatchLargerThanAllNumbers) {
  BatchSpec spec = spec_of(~std::uint64_t{0}, 0, 4'000'000'000u);
  spec.rank_remainder = RankRemainder::drop;
  EXPECT_TRUE(all_of(1000, spec).empty());
  spec.world_size = 1;
  spec.drop_last = true;
  EXPECT_TRUE(all_of(1000, spec).empty());
  spec.drop_last = false;
  EXPECT_EQ(all_of(3, spec), (std::vector<Positions>{{0, 1, 2}}));
}

// Every sample is used `echo` times by all ranks together, but for those that padding adds or dropping leaves
// out.
TEST(EpochBatches, UseEverySampleAsOftenAsAsked) {
  for_each_case([](std::uint64_t sample_count, BatchSpec spec) {
    std::vector<std::uint64_t> uses(sample_count);
    std::uint64_t sum = 0;
    const EpochBatches of_first_rank(sample_count, spec, kSeed, kEpoch);
    const std::uint64_t batch_count = of_first_rank.batch_count();
    for (spec.rank = 0; spec.rank < spec.world_size; ++spec.rank) {
      const EpochBatches batches(sample_count, spec, kSeed, kEpoch);
      ASSERT_EQ(batches.batch_count(), batch_count);
      for (std::uint64_t index = 0; index < batch_count; ++index) {
        ASSERT_EQ(batches.batch(index).size, of_first_rank.batch(index).size);
        for (const std::uint64_t position : positions_of(batches, index)) {
          ASSERT_LT(position, sample_count);
          ++uses[position];
          ++sum;
        }
      }
    }
    const std::uint64_t once = sample_count * spec.echo;
    const std::uint64_t one_each = std::uint64_t{spec.world_size} * spec.echo;
    if (spec.rank_remainder == RankRemainder::pad) {
      ASSERT_LT(sum, once + one_each);
      for (const std::uint64_t count : uses) ASSERT_GE(count, spec.drop_last ? 0 : spec.echo);
    } else {
      ASSERT_GT(sum + one_each * (spec.drop_last ? spec.batch_size : 1), once);
      for (const std::uint64_t count : uses) ASSERT_TRUE(count == 0 || count == spec.echo);
    }
  });
}

TEST(EpochBatches, LeavesOutSmallBatchesWhenAsked) {
  for_each_case([](std::uint64_t sample_count, BatchSpec spec) {
    const std::vector<Positions> all = all_of(sample_count, spec);
    std::size_t full = 0;
    for (const Positions& positions : all) full += positions.size() == spec.batch_size ? 1 : 0;
    if (spec.drop_last) {
      ASSERT_EQ(full, all.size());
      spec.drop_last = false;
      for (const Positions& positions : all_of(sample_count, spec))
        full -= positions.size() == spec.batch_size ? 1 : 0;
      ASSERT_EQ(full, 0u);
    } else {
      // Only the last batch of each pass over the last block may be smaller.
      ASSERT_LE(all.size() - full, spec.echo);
    }
  });
}

// After g global blocks the same samples are used for any number of ranks that share them.
TEST(EpochBatches, UseTheSamePrefixForAnyWorldSize) {
  constexpr std::uint64_t kGlobal = 24;
  for (const std::uint32_t world_size : {1u, 2u, 3u, 4u, 8u})
    for (std::uint64_t done = 0; done * kGlobal < 200; ++done) {
      std::set<std::uint64_t> used;
      for (std::uint32_t rank = 0; rank < world_size; ++rank) {
        const EpochBatches batches(200, spec_of(kGlobal / world_size, rank, world_size), kSeed, kEpoch);
        for (std::uint64_t index = 0; index < done; ++index)
          for (const std::uint64_t position : positions_of(batches, index)) used.insert(position);
      }
      ASSERT_EQ(used.size(), done * kGlobal);
      ASSERT_TRUE(used.empty() || *used.rbegin() == done * kGlobal - 1);
    }
}

TEST(EpochBatches, GoesOnFromTheEndOfAnyBlock) {
  for_each_case([](std::uint64_t sample_count, BatchSpec spec) {
    spec.rank = spec.world_size - 1;
    const EpochBatches whole(sample_count, spec, kSeed, kEpoch);
    std::vector<Positions> left = all_of(whole);
    for (std::uint64_t index = 0; index < whole.batch_count(); ++index) {
      left.erase(left.begin());
      const EpochBatches::Batch batch = whole.batch(index);
      ASSERT_EQ(batch.ends_block && batch.positions_done == sample_count, index + 1 == whole.batch_count());
      if (!batch.ends_block) continue;
      ASSERT_EQ(all_of(sample_count, spec, batch.positions_done), left) << index;
    }
  });
}

// Stopped after any block, it goes on with another number of ranks: together still every sample
// `echo` times.
TEST(EpochBatches, GoesOnWithAnotherWorldSize) {
  for (const std::uint32_t echo : {1u, 2u})
    for (const std::uint32_t later_size : {1u, 2u, 5u}) {
      BatchSpec spec = spec_of(4, 0, 3);
      spec.echo = echo;
      const std::uint64_t blocks = 100 / (4 * 3 * echo);
      for (std::uint64_t done = 0; done <= blocks; ++done) {
        const std::uint64_t position = done * 4 * 3 * echo;
        std::vector<std::uint64_t> uses(100);
        for (spec.rank = 0, spec.world_size = 3; spec.rank < 3; ++spec.rank)
          for (std::uint64_t index = 0; index < done * echo * echo; ++index) {
            const EpochBatches batches(100, spec, kSeed, kEpoch);
            for (const std::uint64_t used : positions_of(batches, index)) ++uses[used];
            ASSERT_LE(batches.batch(index).positions_done, position);
          }
        spec.world_size = later_size;
        spec.rank_remainder = RankRemainder::drop;
        for (spec.rank = 0; spec.rank < later_size; ++spec.rank)
          for (const Positions& positions : all_of(100, spec, position))
            for (const std::uint64_t used : positions) ++uses[used];
        const auto missed = std::count(uses.begin(), uses.end(), 0u);
        ASSERT_EQ(missed, static_cast<std::ptrdiff_t>((100 - position) % later_size));
        ASSERT_EQ(std::count(uses.begin(), uses.end(), echo), 100 - missed);
        spec.rank_remainder = RankRemainder::pad;
      }
    }
}

TEST(EpochBatches, OfAnEchoUseTheirBlockOnceAPassEachTimeInAnotherOrder) {
  for (const std::uint64_t sample_count : {3u * 2u * 20u, 3u * 2u * 20u + 37u}) {
    BatchSpec spec = spec_of(20, 1, 2);
    spec.echo = 3;
    const EpochBatches batches(sample_count, spec, kSeed, kEpoch);
    std::map<std::pair<std::uint64_t, std::uint32_t>, Positions> passes;
    std::set<Positions> seen;
    for (std::uint64_t index = 0; index < batches.batch_count(); ++index) {
      const EpochBatches::Batch batch = batches.batch(index);
      const Positions positions = positions_of(batches, index);
      EXPECT_TRUE(seen.insert(positions).second) << index;
      Positions& pass = passes[{batch.block, batch.pass}];
      ASSERT_EQ(pass.size(), batch.first_in_block);
      pass.insert(pass.end(), positions.begin(), positions.end());
    }
    ASSERT_EQ(passes.size(), sample_count == 120 ? 3u : 6u);
    for (auto& [key, pass] : passes) {
      Positions expected;
      for (std::uint64_t i = 0; i < (key.first == 0 ? 60u : 19u); ++i)
        expected.push_back(((key.first == 0 ? 60 : 139) + i) % sample_count);
      EXPECT_NE(pass, expected);
      std::sort(pass.begin(), pass.end());
      std::sort(expected.begin(), expected.end());
      EXPECT_EQ(pass, expected);
    }
  }
}

TEST(EpochBatches, OfAnEchoPermuteABlockAlikeWhicheverRankHasIt) {
  BatchSpec spec = spec_of(5);
  spec.echo = 2;
  const std::vector<Positions> alone = all_of(40, spec);
  spec.world_size = 2;
  spec.rank = 1;
  const std::vector<Positions> second = all_of(40, spec);
  EXPECT_EQ(std::vector<Positions>(second.begin(), second.begin() + 4),
            std::vector<Positions>(alone.begin() + 4, alone.begin() + 8));
}

/// Three sources of 50 samples, mixed by weights.
class MixedBatches : public testing::Test {
 protected:
  Mixture mix(const std::vector<double>& weights, std::uint64_t epoch_samples) const {
    MixtureShape shape{.sources = {}, .shares = MixtureShares::batch, .epoch_samples = epoch_samples};
    for (const double weight : weights) shape.sources.push_back({"source", shape.sources.size(), 1, weight});
    return {grid_, {.shuffle = Shuffle::none, .seed = kSeed}, shape, std::nullopt};
  }
  ChunkGrid grid_{std::vector<std::uint64_t>{50, 50, 50}};
};

// Nine of ten global batches have no sample of the first source.
TEST_F(MixedBatches, GaveOneRankAllSamplesOfARareSource) {
  const Mixture mixture = mix({1, 9, 390}, 4000);
  BatchSpec spec = spec_of(10, 0, 4);
  for (std::uint64_t epoch = 0; epoch < 8; ++epoch)
    for (spec.rank = 0; spec.rank < 4; ++spec.rank) {
      const EpochBatches batches(4000, spec, kSeed, epoch, 0, &mixture);
      const auto order = std::make_unique<MixedOrder>(mixture, epoch);
      PositionOrder::Window window;
      std::vector<int> of_source(3);
      for (const Positions& batch : all_of(batches))
        for (const std::uint64_t position : batch) ++of_source[(*order)(position, window).chunk];
      EXPECT_GE(of_source[0], 2) << epoch;
      EXPECT_LE(of_source[0], 3) << epoch;
      EXPECT_NEAR(of_source[1], 22, 9) << epoch;
    }
}

TEST_F(MixedBatches, UseEverySampleOnceAndContinueFromAnyBlock) {
  for_each_case([this](std::uint64_t sample_count, BatchSpec spec) {
    const Mixture mixture = mix({1, 2, 8}, sample_count);
    std::vector<std::uint64_t> uses(sample_count), plain(sample_count);
    for (spec.rank = 0; spec.rank < spec.world_size; ++spec.rank) {
      const EpochBatches whole(sample_count, spec, kSeed, kEpoch, 0, &mixture);
      std::vector<Positions> left = all_of(whole);
      for (const Positions& batch : left)
        for (const std::uint64_t position : batch) ++uses[position];
      for (const Positions& batch : all_of(sample_count, spec))
        for (const std::uint64_t position : batch) ++plain[position];
      for (std::uint64_t index = 0; index < whole.batch_count(); ++index) {
        left.erase(left.begin());
        const EpochBatches::Batch batch = whole.batch(index);
        if (!batch.ends_block) continue;
        ASSERT_EQ(all_of({sample_count, spec, kSeed, kEpoch, batch.positions_done, &mixture}), left) << index;
      }
    }
    ASSERT_EQ(uses, plain);
  });
}

// Batches are a format: these are for ever. Expected: tests/batch/order_test.py's arithmetic.
TEST(EpochBatches, KeepsItsEchoes) {
  BatchSpec spec = spec_of(2, 1, 2);
  spec.echo = 2;
  EXPECT_EQ(all_of(13, spec),
            (std::vector<Positions>{{6, 4}, {7, 5}, {4, 6}, {7, 5}, {12, 11}, {0}, {0, 11}, {12}}));
}

}  // namespace
}  // namespace chunkhit
