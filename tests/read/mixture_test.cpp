// Mixtures of sources: exact shares, in any number of threads and ranks; what is an error.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "chunkhit/image_loader.h"
#include "loaded_batches.h"

namespace chunkhit {
namespace {

/// Three parts of 103, 40 and 9 samples.
class Mixture : public testing::Test {
 protected:
  ImageLoaderOptions options(Shuffle shuffle = Shuffle::window,
                             MixtureShares shares = MixtureShares::batch) const {
    return {.batch_size = 10,
            .shuffle = shuffle,
            .seed = 9,
            .window_chunks = 3,
            .mixture = {.weights = {0.5, 0.3, 0.2}, .shares = shares},
            .threads = 2};
  }
  static std::size_t source_of(std::uint64_t sample) {
    return sample < kSamples ? 0 : sample < kSamples + 40 ? 1 : 2;
  }
  static std::vector<int> counts_of(const std::vector<std::uint64_t>& samples) {
    std::vector<int> counts(3);
    for (const std::uint64_t sample : samples) ++counts[source_of(sample)];
    return counts;
  }
  static constexpr std::uint64_t kAll = kSamples + 49;
  TemporaryFolder folder_;
  std::vector<std::string> paths_{write_part(folder_, "shard", "zstd"),
                                  write_part(folder_, "shard", "none", 40),
                                  write_part(folder_, "hdf5", "zstd", 9)};
};

TEST_F(Mixture, GivesTheSameBatchesForAnyThreads) {
  for (const Shuffle shuffle : {Shuffle::none, Shuffle::window, Shuffle::global})
    for (const MixtureShares shares : {MixtureShares::batch, MixtureShares::epoch})
      for (const Cache cache : {Cache::none, Cache::decoded})
        for (const bool draws : {false, true}) {
          ImageLoaderOptions one = options(shuffle, shares);
          one.cache = cache;
          one.threads = 1;
          one.sampler.balanced = draws;
          ImageLoaderOptions many = one;
          many.threads = 8;
          ImageLoader first(paths_, one), second(paths_, many);
          for (const std::uint64_t epoch : {0, 1, 6}) {
            const std::vector<Seen> batches = read_epoch(first, epoch);
            EXPECT_EQ(batches, read_epoch(second, epoch));
            EXPECT_EQ(samples_of(batches).size(), kAll);
            EXPECT_EQ(first.epoch_samples(), kAll);
          }
        }
}

TEST_F(Mixture, HasItsSharesInEveryBatch) {
  ImageLoader loader(paths_, options());
  for (const std::uint64_t epoch : {0, 3})
    for (const Seen& batch : read_epoch(loader, epoch)) {
      if (batch.samples.size() != 10) continue;
      EXPECT_EQ(counts_of(batch.samples), (std::vector<int>{5, 3, 2}));
    }
}

TEST_F(Mixture, HasUnevenSharesInEveryPrefixToWithinOne) {
  ImageLoaderOptions uneven = options();
  uneven.mixture.weights = {1, std::sqrt(2.0), 0.1};
  uneven.sampler.epoch_samples = 700;
  ImageLoader loader(paths_, uneven);
  const double sum = 1.1 + std::sqrt(2.0);
  std::vector<double> counts(3);
  double position = 0;
  for (const std::uint64_t sample : samples_of(read_epoch(loader, 2))) {
    ++counts[source_of(sample)];
    ++position;
    for (std::size_t source = 0; source < 3; ++source)
      EXPECT_LT(std::abs(counts[source] - position * uneven.mixture.weights[source] / sum), 1.02);
  }
}

TEST_F(Mixture, OfAnEpochShufflesSourcesAndKeepsTheirShares) {
  ImageLoaderOptions shuffled = options(Shuffle::window, MixtureShares::epoch);
  shuffled.sampler.epoch_samples = 1000;
  ImageLoader loader(paths_, shuffled);
  std::vector<std::uint64_t> samples;
  bool has_uneven_batch = false;
  for (const Seen& batch : read_epoch(loader, 0)) {
    samples.insert(samples.end(), batch.samples.begin(), batch.samples.end());
    has_uneven_batch = has_uneven_batch || counts_of(batch.samples) != std::vector<int>{5, 3, 2};
  }
  EXPECT_EQ(counts_of(samples), (std::vector<int>{500, 300, 200}));
  EXPECT_TRUE(has_uneven_batch);
}

TEST_F(Mixture, UsesAllSamplesOfASourceBeforeOneComesAgain) {
  for (const Shuffle shuffle : {Shuffle::none, Shuffle::window, Shuffle::global}) {
    ImageLoader loader(paths_, options(shuffle));
    std::map<std::uint64_t, int> counts;
    for (std::uint64_t epoch = 0; epoch < 7; ++epoch) {
      for (const std::uint64_t sample : samples_of(read_epoch(loader, epoch))) ++counts[sample];
      for (const auto& [first, end] : std::vector<std::pair<std::uint64_t, std::uint64_t>>{
               {0, kSamples}, {kSamples, kSamples + 40}, {kAll - 9, kAll}}) {
        std::vector<int> of_source;
        for (std::uint64_t sample = first; sample < end; ++sample) of_source.push_back(counts[sample]);
        const auto [least, most] = std::ranges::minmax(of_source);
        EXPECT_LE(most - least, 1) << epoch;
      }
    }
  }
}

TEST_F(Mixture, GivesASmallShareItsSamplesOverEpochsAndRanks) {
  ImageLoaderOptions rare = options();
  rare.mixture.weights = {98, 1, 1};
  rare.sampler.epoch_samples = 90;
  rare.world_size = 3;
  for (const MixtureShares shares : {MixtureShares::batch, MixtureShares::epoch}) {
    rare.mixture.shares = shares;
    std::vector<int> all(3);
    for (rare.rank = 0; rare.rank < 3; ++rare.rank) {
      ImageLoader loader(paths_, rare);
      std::vector<int> of_rank(3);
      for (std::uint64_t epoch = 0; epoch < 50; ++epoch) {
        const std::vector<int> counts = counts_of(samples_of(read_epoch(loader, epoch)));
        std::ranges::transform(of_rank, counts, of_rank.begin(), std::plus());
      }
      EXPECT_GT(std::ranges::min(of_rank), 0) << rare.rank;
      std::ranges::transform(all, of_rank, all.begin(), std::plus());
    }
    EXPECT_EQ(all, (std::vector<int>{4410, 45, 45}));
  }
}

// Each global batch of 50 samples has one of the rare source, always at the same position.
TEST_F(Mixture, LeftAllSamplesOfARareSourceToOneRank) {
  ImageLoaderOptions rare = options();
  rare.mixture.weights = {48, 1, 1};
  rare.sampler.epoch_samples = 1000;
  rare.world_size = 5;
  for (const std::uint64_t epoch : {0, 3})
    for (rare.rank = 0; rare.rank < 5; ++rare.rank) {
      ImageLoader loader(paths_, rare);
      EXPECT_EQ(counts_of(samples_of(read_epoch(loader, epoch))), (std::vector<int>{192, 4, 4})) << rare.rank;
    }
}

TEST_F(Mixture, IsSharedOutAmongRanksAndResumes) {
  for (const MixtureShares shares : {MixtureShares::batch, MixtureShares::epoch})
    for (const std::uint32_t echo : {1u, 2u}) {
      ImageLoaderOptions of_ranks = options(Shuffle::window, shares);
      of_ranks.rank_remainder = RankRemainder::drop;
      of_ranks.echo = echo;
      of_ranks.batch_size = 10;
      of_ranks.streams = 2;
      ImageLoader whole(paths_, of_ranks);
      std::vector<std::uint64_t> expected = samples_of(read_epoch(whole, 4)), found;
      of_ranks.batch_size = 5;
      of_ranks.world_size = 2;
      for (of_ranks.rank = 0; of_ranks.rank < 2; ++of_ranks.rank) {
        ImageLoader loader(paths_, of_ranks);
        const std::vector<Seen> batches = read_epoch(loader, 4);
        for (const Seen& batch : batches)
          found.insert(found.end(), batch.samples.begin(), batch.samples.end());
        static_cast<void>(loader.epoch(4));
        for (int batch = 0; batch < 3; ++batch) ASSERT_NE(loader.next(), nullptr);
        ImageLoaderOptions other = of_ranks;
        other.threads = 5;
        ImageLoader resumed(paths_, other);
        resumed.restore(loader.state());
        EXPECT_EQ(read_epoch(resumed, 4), std::vector<Seen>(batches.begin() + 3, batches.end()));
      }
      std::ranges::sort(expected);
      std::ranges::sort(found);
      EXPECT_EQ(found, expected);
    }
}

// The next epoch has other streams than the one that was gone on with, of the same own epochs of the sources.
TEST_F(Mixture, GoesOnWithOtherRanksIntoTheNextEpoch) {
  ImageLoaderOptions of_ranks = options();
  of_ranks.mixture.weights = {1, 1, 1};
  of_ranks.sampler.epoch_samples = 40;
  of_ranks.world_size = 2;
  of_ranks.batch_size = 4;
  of_ranks.window_chunks = 64;
  of_ranks.threads = 1;
  ImageLoader first(paths_, of_ranks);
  ASSERT_NE(first.next(), nullptr);
  for (of_ranks.world_size = 1; of_ranks.world_size < 5; ++of_ranks.world_size) {
    ImageLoader resumed(paths_, of_ranks), fresh(paths_, of_ranks);
    resumed.restore(first.state());
    static_cast<void>(read_epoch(resumed, 0));
    EXPECT_EQ(read_epoch(resumed, 1), read_epoch(fresh, 1)) << of_ranks.world_size;
  }
}

TEST_F(Mixture, ChangesEachUseOfASampleInItsOwnWay) {
  ImageLoaderOptions crops = options();
  crops.mixture.weights = {1, 1, 98};
  crops.sampler.epoch_samples = 1000;
  crops.augment = {.crop_height = 3, .crop_width = 3, .random_crop = true};
  ImageLoader loader(paths_, crops);
  std::map<std::uint64_t, std::map<std::vector<std::uint8_t>, int>> seen_crops;
  for (const Seen& batch : read_epoch(loader, 0))
    for (std::size_t i = 0; i < batch.samples.size(); ++i) {
      const auto first = batch.pixels.begin() + static_cast<std::ptrdiff_t>(i * 27);
      if (source_of(batch.samples[i]) == 2) ++seen_crops[batch.samples[i]][{first, first + 27}];
    }
  ASSERT_EQ(seen_crops.size(), 9u);
  for (const auto& [sample, of_sample] : seen_crops)
    EXPECT_GT(of_sample.size(), 6u) << sample;  // of 12 boxes, in 109 uses
}

TEST_F(Mixture, ReadsAChunkOnceAVisit) {
  ImageLoaderOptions read = options();
  read.cache = Cache::none;
  read.sampler.epoch_samples = 2060;
  ImageLoader loader(paths_, read);
  static_cast<void>(read_epoch(loader, 0));
  const MixingInfo mixing = loader.mixing();
  EXPECT_EQ(mixing.chunks, 26u + 10 + 3);
  EXPECT_EQ(mixing.epoch_samples, 2060u);
  EXPECT_DOUBLE_EQ(mixing.distinct_samples, static_cast<double>(kAll));
  // 10 own epochs of 26 chunks, 15.45 of 10, 45.8 of 3; a window at the end may be read in part.
  EXPECT_GE(mixing.chunk_visits, 260u + 154 + 137);
  EXPECT_LE(mixing.chunk_visits, 260u + 157 + 138);
  EXPECT_NEAR(mixing.samples_per_visit, 2060. / 553, 0.05);
  EXPECT_LE(loader.stats().chunk_fetches, mixing.chunk_visits + 60);  // of the next epoch
}

TEST_F(Mixture, WeighsAndChoosesWithinEachSource) {
  ImageLoaderOptions drawn = options();
  drawn.sampler.subset.classes = {"cat", "dög"};
  drawn.sampler.class_weights = {{"cat", 3}, {"dög", 1}};
  drawn.sampler.epoch_samples = 4000;
  ImageLoader loader(paths_, drawn);
  std::vector<std::map<std::int64_t, int>> labels(3);
  for (const Seen& batch : read_epoch(loader, 1))
    for (std::size_t i = 0; i < batch.samples.size(); ++i)
      ++labels[source_of(batch.samples[i])][batch.labels[i]];
  EXPECT_NEAR(labels[0][0], 2000 * 105. / (105 + 34), 60);
  EXPECT_NEAR(labels[1][0], 1200 * 42. / (42 + 13), 40);
  EXPECT_NEAR(labels[2][0], 800 * 9. / (9 + 3), 40);
  for (const auto& of_source : labels) EXPECT_EQ(of_source.size(), 2u);
}

TEST_F(Mixture, BalancesTheClassesOfEachSource) {
  ImageLoaderOptions drawn = options();
  drawn.sampler.balanced = true;
  drawn.sampler.epoch_samples = 4000;
  // Many of one class and few of the other, the other way round in the second source.
  std::vector<std::uint64_t> samples;
  for (std::uint64_t sample = 0; sample < kAll; ++sample) {
    const std::size_t source = source_of(sample);
    const std::uint64_t in_source = sample - (source == 0 ? 0 : source == 1 ? kSamples : kSamples + 40);
    const std::uint64_t label = in_source % 3;
    if (label == 2 || (label == (source == 1 ? 1 : 0) && in_source > 3)) continue;
    samples.push_back(sample);
  }
  drawn.sampler.subset.samples = samples;
  ImageLoader loader(paths_, drawn);
  std::vector<std::map<std::int64_t, int>> labels(3);
  for (const Seen& batch : read_epoch(loader, 0))
    for (std::size_t i = 0; i < batch.samples.size(); ++i)
      ++labels[source_of(batch.samples[i])][batch.labels[i]];
  EXPECT_NEAR(labels[0][0], 1000, 60);
  EXPECT_NEAR(labels[1][0], 600, 40);
  EXPECT_NEAR(labels[2][0], 400, 40);
  EXPECT_EQ(labels[0][0] + labels[0][1], 2000);
}

TEST_F(Mixture, SaysWhatIsWrong) {
  const auto refusal = [this](const ImageLoaderOptions& given) {
    try {
      const ImageLoader loader(paths_, given);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::usage) << error.what();
      return std::string(error.what());
    }
    return std::string();
  };
  ImageLoaderOptions given = options();
  given.mixture.weights = {1, 2};
  EXPECT_EQ(refusal(given), "mixture: 2 weights, expected 3, one for each path");
  given.mixture.weights = {1, 0, 2};
  EXPECT_NE(refusal(given).find("weight 0.000000, expected a finite number above 0"), std::string::npos);
  given.mixture.weights = {1, std::nan(""), 2};
  EXPECT_NE(refusal(given).find("mixture: " + paths_[1] + ": weight nan"), std::string::npos);
  given.mixture.weights = {1e308, 1e308, 1};
  EXPECT_EQ(refusal(given), "mixture: the sum of the weights is above 1.8e308; divide them all");
  given.mixture.weights = {1, 1, 1e-9};
  EXPECT_NE(refusal(given).find("mixture: " + paths_[2] + ": share 0.000000, expected at least 1 / 65536"),
            std::string::npos);
  given = options();
  given.sampler.subset.samples = {{1, 2, 3, 150}};
  EXPECT_NE(refusal(given).find("mixture: " + paths_[1] + ": has no samples of the subset"),
            std::string::npos);
  given = options();
  given.sampler.weights.assign(kAll, 0);
  given.sampler.weights[0] = 1;
  EXPECT_NE(refusal(given).find("mixture: " + paths_[1] + ": all of its samples have weight 0"),
            std::string::npos);
  given = options();
  given.sampler.replacement = false;
  EXPECT_NE(refusal(given).find("replacement: false does not go with a mixture"), std::string::npos);
  given = options();
  given.mixture = {.weights = {}, .shares = MixtureShares::epoch};
  EXPECT_NE(refusal(given).find("shares: need a mixture"), std::string::npos);
  given = options();
  given.sampler.epoch_samples = 3'000'000;
  EXPECT_NE(refusal(given).find("its 9 samples give 600000 of an epoch, expected at most 589824"),
            std::string::npos);
}

TEST_F(Mixture, HasNoEpochThatWouldOverflow) {
  ImageLoader loader(paths_, options());
  EXPECT_EQ(samples_of(read_epoch(loader, 999'999'999)).size(), kAll);
  for (const std::uint64_t epoch : {std::uint64_t{1'000'000'000}, ~std::uint64_t{0}}) {
    try {
      static_cast<void>(loader.epoch(epoch));
      ADD_FAILURE() << epoch;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::usage);
      EXPECT_NE(std::string(error.what()).find("expected less than 1000000000"), std::string::npos)
          << error.what();
    }
  }
}

TEST_F(Mixture, RefusesAStateOfOtherShares) {
  ImageLoader loader(paths_, options());
  static_cast<void>(loader.epoch(0));
  ASSERT_NE(loader.next(), nullptr);
  const std::string state = loader.state();
  std::vector<ImageLoaderOptions> others(4, options());
  others[0].mixture.weights = {0.5, 0.2, 0.3};
  others[1].mixture.shares = MixtureShares::epoch;
  others[2].sampler.epoch_samples = 153;
  others[3].mixture = {};
  for (const ImageLoaderOptions& other : others) {
    ImageLoader refusing(paths_, other);
    EXPECT_THROW(refusing.restore(state), Error);
  }
  ImageLoaderOptions same = options();
  same.mixture.weights = {5, 3, 2};
  ImageLoader resuming(paths_, same);
  EXPECT_NO_THROW(resuming.restore(state));
}

}  // namespace
}  // namespace chunkhit
