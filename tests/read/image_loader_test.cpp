#include "chunkhit/image_loader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "loaded_batches.h"

namespace chunkhit {
namespace {

TEST(ImageLoader, GivesEverySampleOnceInEveryOrderResidencyAndContainer) {
  const TemporaryFolder folder;
  for (const auto& [kind, filter] : kKinds) {
    const std::string path = write_part(folder, kind, filter);
    for (const Shuffle shuffle : {Shuffle::none, Shuffle::window, Shuffle::global})
      for (const Cache cache : {Cache::automatic, Cache::decoded, Cache::compressed, Cache::none}) {
        ImageLoader loader(path, {.batch_size = 10,
                                  .shuffle = shuffle,
                                  .seed = 7,
                                  .window_chunks = 3,
                                  .cache = cache,
                                  .threads = 3});
        for (const std::uint64_t epoch : {0, 1}) {
          const std::vector<Seen> batches = read_epoch(loader, epoch);
          expect_known_pixels(batches);
          std::vector<std::uint64_t> samples = samples_of(batches);
          EXPECT_EQ(shuffle == Shuffle::none, samples == all_samples());
          std::sort(samples.begin(), samples.end());
          ASSERT_EQ(samples, all_samples()) << kind << " " << filter << " " << static_cast<int>(shuffle);
        }
      }
  }
}

TEST(ImageLoader, GivesTheSameBatchesForAnyNumberOfThreads) {
  const TemporaryFolder folder;
  const std::string path = write_part(folder, "shard", "photo");
  std::vector<Seen> first;
  for (const std::uint32_t threads : {1, 2, 5, 8}) {
    ImageLoader loader(path, {.batch_size = 7,
                              .shuffle = Shuffle::window,
                              .seed = 3,
                              .window_chunks = 4,
                              .augment = {.flip_horizontal = 0.5},
                              .cache = Cache::none,
                              .threads = threads});
    const std::vector<Seen> batches = read_epoch(loader, 2);
    if (first.empty()) first = batches;
    EXPECT_TRUE(batches == first) << threads;
  }
}

TEST(ImageLoader, LeavesBatchesThatAreKeptAsTheyAre) {
  const TemporaryFolder folder;
  const std::string path = write_part(folder, "shard", "zstd");
  std::vector<std::shared_ptr<const ImageBatch>> kept;
  std::vector<Seen> expected;
  {
    ImageLoader loader(path, {.batch_size = 10, .shuffle = Shuffle::global, .threads = 2, .prefetch = 2});
    EXPECT_EQ(loader.retain(), nullptr);
    for (const std::uint64_t epoch : {0, 1}) {
      for (const ImageBatch& batch : loader.epoch(epoch)) {
        expected.push_back(seen(batch));
        kept.push_back(loader.retain());
        if (batch.index == 7) break;
      }
    }
    EXPECT_EQ(loader.stats().retained_batches, kept.size() - 1);
  }
  ASSERT_EQ(kept.size(), 16);
  for (std::size_t i = 0; i < kept.size(); ++i) EXPECT_EQ(seen(*kept[i]), expected[i]) << i;
}

TEST(ImageLoader, UsesTheMemoryOfBatchesThatNobodyKeepsAnyMore) {
  const TemporaryFolder folder;
  int allocations = 0;
  ImageLoader loader(write_part(folder, "shard", "zstd"),
                     {.batch_size = 10,
                      .threads = 2,
                      .prefetch = 2,
                      .allocator = {[&](std::size_t bytes) {
                                      ++allocations;
                                      return std::aligned_alloc(64, (bytes + 63) / 64 * 64);
                                    },
                                    [](void* memory, std::size_t) { std::free(memory); }}});
  std::shared_ptr<const ImageBatch> last;
  for (std::uint64_t epoch = 0; epoch < 20; ++epoch)
    for (const ImageBatch& batch : loader.epoch(epoch)) {
      static_cast<void>(batch);
      last = loader.retain();
    }
  // The ring of three, and one or two beside it.
  EXPECT_LE(allocations, 5);
}

TEST(ImageLoader, FetchesEachChunkOnceAnEpochWithAWindow) {
  const TemporaryFolder folder;
  const std::string path = write_part(folder, "shard", "zstd");
  ImageLoader loader(path, {.batch_size = 9,
                            .shuffle = Shuffle::window,
                            .window_chunks = 5,
                            .cache = Cache::none,
                            .threads = 2,
                            .prefetch = 2});
  constexpr std::uint64_t kChunks = (kSamples + kKnownChunkSamples - 1) / kKnownChunkSamples;
  read_epoch(loader, 0);
  // Threads read ahead into the next epoch; what they fetched there is not fetched again.
  EXPECT_GE(loader.stats().chunk_fetches, kChunks);
  for (std::uint64_t epoch = 1; epoch < 20; ++epoch) read_epoch(loader, epoch);
  EXPECT_LE(loader.stats().chunk_fetches, 21 * kChunks);
}

/// Slices of a batch would else each fetch almost all chunks.
TEST(ImageLoader, FetchesEachChunkAboutOnceABatchWhereSamplesAreResized) {
  const TemporaryFolder folder;
  const std::string path = write_part(folder, "shard", "zstd");
  AugmentSpec augment;
  augment.resized_crop.height = augment.resized_crop.width = 4;
  ImageLoader loader(path, {.batch_size = kSamples,
                            .shuffle = Shuffle::global,
                            .augment = augment,
                            .cache = Cache::none,
                            .cache_bytes = 20'000,
                            .threads = 1,
                            .prefetch = 1});
  constexpr std::uint64_t kChunks = (kSamples + kKnownChunkSamples - 1) / kKnownChunkSamples;
  constexpr std::uint64_t kSlices = (kSamples + 15) / 16, kEpochs = 20;
  std::vector<std::uint64_t> seen;
  for (std::uint64_t epoch = 0; epoch < kEpochs; ++epoch)
    for (const ImageBatch& batch : loader.epoch(epoch))
      seen.insert(seen.end(), batch.samples.begin(), batch.samples.end());
  EXPECT_LE(loader.stats().chunk_fetches, (kEpochs + 2) * (kChunks + kSlices - 1));
  EXPECT_EQ(seen.size(), kEpochs * kSamples);
}

TEST(ImageLoader, SharesAnEpochAmongRanks) {
  const TemporaryFolder folder;
  const std::string path = write_part(folder, "hdf5", "none");
  for (const RankRemainder rank_remainder : {RankRemainder::pad, RankRemainder::drop}) {
    std::map<std::uint64_t, int> counts;
    std::size_t longest = 0, shortest = kSamples;
    for (const std::uint32_t rank : {0, 1, 2, 3}) {
      ImageLoader loader(path, {.batch_size = 5,
                                .shuffle = Shuffle::window,
                                .seed = 5,
                                .window_chunks = 2,
                                .rank = rank,
                                .world_size = 4,
                                .rank_remainder = rank_remainder,
                                .threads = 2});
      const std::vector<std::uint64_t> samples = samples_of(read_epoch(loader, 4));
      longest = std::max(longest, samples.size());
      shortest = std::min(shortest, samples.size());
      for (const std::uint64_t sample : samples) ++counts[sample];
    }
    EXPECT_EQ(longest, shortest);
    const auto twice =
        std::count_if(counts.begin(), counts.end(), [](const auto& each) { return each.second > 1; });
    EXPECT_EQ(counts.size(), rank_remainder == RankRemainder::pad ? kSamples : kSamples - 3);
    EXPECT_EQ(twice, rank_remainder == RankRemainder::pad ? 1 : 0);
  }
}

TEST(ImageLoader, RanksReadEachChunkOnce) {
  const TemporaryFolder folder;
  const std::string path = write_part(folder, "shard", "photo");
  constexpr std::uint64_t kChunks = (kSamples + kKnownChunkSamples - 1) / kKnownChunkSamples, kEpochs = 4;
  for (const Shuffle shuffle : {Shuffle::none, Shuffle::window})
    for (const std::uint32_t ranks : {1, 2, 3, 6}) {
      std::uint64_t fetches = 0, visits = 0;
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        ImageLoader loader(path, {.batch_size = 4,
                                  .shuffle = shuffle,
                                  .window_chunks = 4,
                                  .rank = rank,
                                  .world_size = ranks,
                                  .cache = Cache::none,
                                  .threads = 2,
                                  .prefetch = 1});
        for (std::uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
          std::set<std::uint64_t> chunks;
          for (const std::uint64_t sample : samples_of(read_epoch(loader, epoch)))
            chunks.insert(sample / kKnownChunkSamples);
          visits += chunks.size();
        }
        fetches += loader.stats().chunk_fetches;
      }
      EXPECT_LE(visits, kEpochs * (kChunks + ranks - 1)) << ranks;
      // Chunks of the next epoch are read ahead.
      EXPECT_LE(fetches, (kEpochs + 1) * (kChunks + ranks - 1)) << ranks;
    }
}

TEST(ImageLoader, GivesTheSameGlobalBatchesToAnyRanksThatDivideTheStreams) {
  const TemporaryFolder folder;
  const std::string path = write_part(folder, "hdf5", "none");
  for (const Shuffle shuffle : {Shuffle::none, Shuffle::window}) {
    std::vector<std::vector<std::uint64_t>> expected;
    for (const std::uint32_t ranks : {4, 2, 1}) {
      std::vector<std::vector<std::uint64_t>> batches(kSamples / 12);
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        ImageLoader loader(path, {.batch_size = 12 / ranks,
                                  .shuffle = shuffle,
                                  .window_chunks = 3,
                                  .rank = rank,
                                  .world_size = ranks,
                                  .streams = 4,
                                  .threads = 2});
        static_cast<void>(loader.epoch(1));
        for (auto& batch : batches) {
          const ImageBatch& next = *loader.next();
          batch.insert(batch.end(), next.samples.begin(), next.samples.end());
        }
      }
      for (auto& batch : batches) std::sort(batch.begin(), batch.end());
      if (expected.empty()) expected = batches;
      EXPECT_EQ(batches, expected) << ranks;
    }
  }
  EXPECT_NO_THROW(ImageLoader(path, {.world_size = 2, .streams = 1}));
  EXPECT_THROW(ImageLoader(path, {.world_size = 2, .streams = 3}), Error);
  EXPECT_THROW(ImageLoader(path, {.batch_size = 7, .world_size = 2, .streams = 4}), Error);
}

TEST(ImageLoader, SharesFewerSamplesThanRanks) {
  const TemporaryFolder folder;
  const std::string path = write_part(folder, "shard", "photo");
  std::map<std::uint64_t, int> counts;
  for (std::uint32_t rank = 0; rank < 8; ++rank) {
    ImageLoader loader(path, {.batch_size = 2,
                              .shuffle = Shuffle::window,
                              .rank = rank,
                              .world_size = 8,
                              .sampler = {.subset = {.samples = std::vector<std::uint64_t>{5, 7, 90}}}});
    for (const std::uint64_t epoch : {0, 1})
      for (const std::uint64_t sample : samples_of(read_epoch(loader, epoch))) ++counts[sample];
  }
  EXPECT_EQ(counts.size(), 3u);
  int uses = 0;
  for (const auto& [sample, times] : counts) uses += times;
  EXPECT_EQ(uses, 16);
}

TEST(ImageLoader, EndsTheEpochOfAnEarlierStateWithOneStream) {
  const TemporaryFolder folder;
  const std::string path = write_part(folder, "hdf5", "none");
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    ImageLoaderOptions options{.batch_size = 6,
                               .shuffle = Shuffle::window,
                               .seed = 3,
                               .window_chunks = 2,
                               .rank = rank,
                               .world_size = 2,
                               .streams = 1};
    ImageLoader before(path, options);
    ASSERT_NE(before.next(), nullptr);
    const std::string state = before.state();
    EXPECT_EQ(state.find("streams"), std::string::npos);  // as versions before 0.2.0 wrote it
    options.streams = 0;
    ImageLoader after(path, options);
    after.restore(state);
    for (const ImageBatch* batch = before.next(); batch != nullptr; batch = before.next())
      EXPECT_TRUE(std::ranges::equal(after.next()->samples, batch->samples));
    EXPECT_EQ(after.next(), nullptr);
  }
}

TEST(ImageLoader, GoesOnFromEveryState) {
  const TemporaryFolder folder;
  const std::string path = write_part(folder, "shard", "photo");
  for (const std::uint32_t echo : {1, 2}) {
    const ImageLoaderOptions options{.batch_size = 8,
                                     .shuffle = Shuffle::window,
                                     .seed = 9,
                                     .window_chunks = 3,
                                     .echo = echo,
                                     .augment = {.flip_horizontal = 0.5},
                                     .threads = 2};
    ImageLoader whole(path, options);
    const std::vector<Seen> all = read_epoch(whole, 1);
    ImageLoader loader(path, options);
    std::vector<std::string> states;
    for (const ImageBatch& batch : loader.epoch(1)) {
      static_cast<void>(batch);
      states.push_back(loader.state());
    }
    ASSERT_EQ(states.size(), all.size());
    for (std::size_t done = 1; done <= all.size(); ++done) {
      ImageLoaderOptions other = options;
      other.threads = 1 + static_cast<std::uint32_t>(done % 4);
      ImageLoader again(path, other);
      again.restore(states[done - 1]);
      EXPECT_EQ(again.state(), states[done - 1]);
      const std::vector<Seen> rest = read_epoch(again, 1);
      ASSERT_TRUE(
          std::equal(rest.begin(), rest.end(), all.begin() + static_cast<std::ptrdiff_t>(done), all.end()))
          << done;
      EXPECT_TRUE(read_epoch(again, 1) == all);
    }
  }
}

TEST(ImageLoader, GoesOnWithAnotherNumberOfRanks) {
  const TemporaryFolder folder;
  const std::string path = write_part(folder, "hdf5", "deflate");
  for (const Shuffle shuffle : {Shuffle::none, Shuffle::window, Shuffle::global}) {
    ImageLoaderOptions options{.batch_size = 6,
                               .shuffle = shuffle,
                               .seed = 1,
                               .window_chunks = 2,
                               .world_size = 2,
                               .rank_remainder = RankRemainder::drop,
                               .threads = 2};
    std::map<std::uint64_t, int> counts;
    std::string state;
    for (options.rank = 0; options.rank < 2; ++options.rank) {
      ImageLoader loader(path, options);
      static_cast<void>(loader.epoch(0));
      for (int batch = 0; batch < 4; ++batch)
        for (const std::uint64_t sample : loader.next()->samples) ++counts[sample];
      state = loader.state();
    }
    options.world_size = 3;
    options.rank_remainder = RankRemainder::pad;
    for (options.rank = 0; options.rank < 3; ++options.rank) {
      ImageLoader loader(path, options);
      loader.restore(state);
      for (const std::uint64_t sample : samples_of(read_epoch(loader, 0))) ++counts[sample];
      // The next epoch has streams of the new ranks.
      EXPECT_FALSE(read_epoch(loader, 1).empty());
    }
    EXPECT_EQ(counts.size(), kSamples);
    EXPECT_LE(std::count_if(counts.begin(), counts.end(), [](const auto& each) { return each.second > 1; }),
              2);
  }
}

TEST(ImageLoader, RefusesAStateThatIsNotItsOwn) {
  const TemporaryFolder folder;
  const std::string path = write_part(folder, "hdf5", "none");
  ImageLoader loader(path, {.batch_size = 8, .shuffle = Shuffle::window, .seed = 9});
  ImageLoader other_seed(path, {.batch_size = 8, .shuffle = Shuffle::window, .seed = 8});
  ImageLoader other_source(write_part(folder, "hdf5", "none", 50),
                           {.batch_size = 8, .shuffle = Shuffle::window, .seed = 9});
  const std::string state = loader.state();
  EXPECT_THROW(other_seed.restore(state), Error);
  EXPECT_THROW(other_source.restore(state), Error);
  for (const char* text : {"", "{}", "[1]", "{\"format\":\"chunkhit-loader-state-1\"}"})
    EXPECT_THROW(loader.restore(text), Error);
}

TEST(ImageLoader, MayBeLeftInTheMidstOfAnEpoch) {
  const TemporaryFolder folder;
  const std::string path = write_part(folder, "shard", "photo");
  ImageLoader loader(path, {.batch_size = 4,
                            .shuffle = Shuffle::window,
                            .seed = 1,
                            .window_chunks = 2,
                            .cache = Cache::none,
                            .threads = 3});
  const std::vector<Seen> all = read_epoch(loader, 0);
  for (std::size_t stop = 0; stop < 8; ++stop) {
    std::size_t at = 0;
    for (const ImageBatch& batch : loader.epoch(0)) {
      ASSERT_TRUE(seen(batch) == all[at]);
      if (at++ == stop) break;
    }
  }
  ImageLoader second(path, {.batch_size = 4, .shuffle = Shuffle::global, .seed = 2, .threads = 2});
  static_cast<void>(second.epoch(0));
  ASSERT_NE(second.next(), nullptr);
  EXPECT_TRUE(read_epoch(loader, 0) == all);
}

TEST(ImageLoader, EndsAnEpochWithNothingUntilTheNextIsBegun) {
  const TemporaryFolder folder;
  ImageLoader loader(write_part(folder, "hdf5", "none"), {.batch_size = 50});
  EXPECT_EQ(loader.batch_count(), 3u);
  EXPECT_EQ(read_epoch(loader, 0).size(), 3u);
  EXPECT_EQ(loader.next(), nullptr);
  EXPECT_EQ(loader.next(), nullptr);
  EXPECT_EQ(read_epoch(loader, 1).size(), 3u);
}

TEST(ImageLoader, ReadsSeveralPartsAsOne) {
  const TemporaryFolder folder;
  const std::string first = write_part(folder, "hdf5", "none", 10),
                    second = write_part(folder, "shard", "photo", 7);
  ImageLoader loader(std::vector{first, second}, {.batch_size = 17});
  ASSERT_EQ(loader.size(), 17u);
  const std::vector<Seen> batches = read_epoch(loader, 0);
  ASSERT_EQ(batches.size(), 1u);
  const ByteBuffer expected = known_samples(kShape, 3, 1);
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(),
                         batches[0].pixels.begin() + static_cast<std::ptrdiff_t>(13 * kShape.byte_count())));
}

TEST(ImageLoader, GivesNumbersAsLabels) {
  const TemporaryFolder folder;
  ImageLoader loader(write_part(folder, "shard", "none", 9, 3), {.batch_size = 4});
  static_cast<void>(loader.epoch(0));
  const ImageBatch* const batch = loader.next();
  ASSERT_EQ(batch->label_values().size(), 12u);
  EXPECT_TRUE(batch->are_numbers());
  EXPECT_THROW(static_cast<void>(batch->labels()), Error);
  EXPECT_THROW(static_cast<void>(batch->values()), Error);
  EXPECT_THROW(static_cast<void>(batch->half_values()), Error);
  EXPECT_EQ(batch->label_values()[3], 1.0f);
  EXPECT_EQ(batch->label_values()[4], 1.25f);
}

}  // namespace
}  // namespace chunkhit
