// Loaders with samplers: which samples their epochs have, for any threads, ranks and echoes, and what is an
// error.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "chunkhit/image_loader.h"
#include "loaded_batches.h"

namespace chunkhit {
namespace {

// The classes of write_part are sample % 3: 35 samples of the first, 34 of the others.
const std::string kLong = "a class with a longer name";

ImageLoaderOptions with_sampler(SamplerSpec sampler, Shuffle shuffle = Shuffle::window) {
  return {.batch_size = 8,
          .shuffle = shuffle,
          .seed = 9,
          .window_chunks = 3,
          .sampler = std::move(sampler),
          .threads = 2};
}

std::vector<std::uint64_t> sorted(std::vector<std::uint64_t> samples) {
  std::ranges::sort(samples);
  return samples;
}

/// What making a loader throws; empty where it does not.
std::string refusal(const std::string& path, const SamplerSpec& sampler) {
  try {
    const ImageLoader loader(path, with_sampler(sampler));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage) << error.what();
    return error.what();
  }
  return "";
}

std::vector<double> weights_of_class_1() {
  std::vector<double> weights(kSamples, 1.0);
  for (std::uint64_t sample = 1; sample < kSamples; sample += 3) weights[sample] = 3;
  return weights;
}

/// Samplers of all kinds.
std::vector<SamplerSpec> samplers() {
  return {{.subset = {.samples = {{5, 3, 102, 40, 41, 42, 0}}}},
          {.subset = {.classes = {"dög", kLong}}},
          {.balanced = true},
          {.weights = weights_of_class_1()},
          {.weights = weights_of_class_1(), .epoch_samples = 333},
          {.class_weights = {{"cat", 1}, {"dög", 0}, {kLong, 2.5}}},
          {.weights = weights_of_class_1(), .replacement = false, .epoch_samples = 50},
          {.replacement = false, .epoch_samples = 20}};
}

TEST(Sampler, GivesTheSameBatchesForAnyThreadsAndEpochBefore) {
  const TemporaryFolder folder;
  const std::string path = write_part(folder, "shard", "zstd");
  for (const SamplerSpec& sampler : samplers())
    for (const Shuffle shuffle : {Shuffle::none, Shuffle::window, Shuffle::global})
      for (const Cache cache : {Cache::none, Cache::decoded}) {
        ImageLoaderOptions options = with_sampler(sampler, shuffle);
        options.cache = cache;
        options.threads = 1;
        ImageLoader one(path, options);
        options.threads = 8;
        ImageLoader many(path, options);
        for (const std::uint64_t epoch : {0, 1, 2, 7}) {
          const std::vector<Seen> batches = read_epoch(one, epoch);
          EXPECT_EQ(batches, read_epoch(many, epoch));
          EXPECT_EQ(samples_of(batches).size(), one.epoch_samples());
          expect_known_pixels(batches);
        }
      }
}

TEST(Sampler, OfASubsetGivesEachOfItsSamplesOnce) {
  const TemporaryFolder folder;
  const std::string path = write_part(folder, "shard", "zstd");
  std::vector<std::uint64_t> of_classes;
  for (std::uint64_t sample = 0; sample < kSamples; ++sample)
    if (sample % 3 != 0) of_classes.push_back(sample);
  const std::string csv = folder.path("subset.csv");
  std::ofstream(csv) << "label,sample\n1,7\n0,3\n\n2,50\n";
  const std::vector<std::pair<SubsetSpec, std::vector<std::uint64_t>>> cases{
      {{.samples = {{5, 3, 102, 40, 41, 42, 0}}}, {0, 3, 5, 40, 41, 42, 102}},
      {{.classes = {kLong, "dög"}}, of_classes},
      {{.label_range = {{1, 5}}}, of_classes},
      {{.csv = csv}, {3, 7, 50}}};
  for (const auto& [subset, expected] : cases)
    for (const Shuffle shuffle : {Shuffle::none, Shuffle::window, Shuffle::global}) {
      ImageLoader loader(path, with_sampler({.subset = subset}, shuffle));
      for (const std::uint64_t epoch : {0, 1}) {
        const std::vector<std::uint64_t> found = samples_of(read_epoch(loader, epoch));
        EXPECT_EQ(sorted(found), expected);
        EXPECT_EQ(found == expected, shuffle == Shuffle::none);
      }
    }
}

TEST(Sampler, ReadsOnlyTheChunksThatItHasSamplesOf) {
  const TemporaryFolder folder;
  const std::string path = write_part(folder, "shard", "zstd");
  for (const Shuffle shuffle : {Shuffle::none, Shuffle::window}) {
    ImageLoaderOptions options =
        with_sampler({.subset = {.samples = {{0, 1, 2, 50, 100, 101}}}, .epoch_samples = 600}, shuffle);
    options.cache = Cache::none;
    ImageLoader loader(path, options);
    static_cast<void>(read_epoch(loader, 0));
    const MixingInfo mixing = loader.mixing();
    EXPECT_EQ(mixing.chunks, 26u);
    EXPECT_EQ(mixing.chunk_visits, 3u);  // chunks 0, 12 and 25 of four samples
    EXPECT_EQ(mixing.epoch_samples, 600u);
    EXPECT_DOUBLE_EQ(mixing.distinct_samples, 6);
    EXPECT_DOUBLE_EQ(mixing.samples_per_visit, 200);
    // Also the next epoch's, 6 as a rule; 7 were seen once on a busy machine. All chunks would be 52.
    EXPECT_LE(loader.stats().chunk_fetches, 12u);
  }
}

TEST(Sampler, DrawsEachSampleAsOftenAsItsWeightAsks) {
  const TemporaryFolder folder;
  const std::string path = write_part(folder, "shard", "zstd");
  ImageLoader loader(path, with_sampler({.weights = weights_of_class_1()}));
  std::vector<std::uint64_t> counts(kSamples);
  constexpr std::uint64_t kEpochs = 300;
  const double weights = kSamples + 2. * 34;
  for (std::uint64_t epoch = 0; epoch < kEpochs; ++epoch)
    for (const std::uint64_t sample : samples_of(read_epoch(loader, epoch))) ++counts[sample];
  for (std::uint64_t sample = 0; sample < kSamples; ++sample) {
    const double expected = kEpochs * kSamples * (sample % 3 == 1 ? 3 : 1) / weights;
    EXPECT_NEAR(static_cast<double>(counts[sample]), expected, 5 * std::sqrt(kEpochs * 0.25)) << sample;
  }
}

TEST(Sampler, BalancesClasses) {
  const TemporaryFolder folder;
  const std::string path = write_part(folder, "shard", "zstd");
  // 35 samples of class 0, and few of the others.
  std::vector<std::uint64_t> samples{1, 2, 4, 5, 7};
  for (std::uint64_t sample = 0; sample < kSamples; sample += 3) samples.push_back(sample);
  ImageLoader loader(path,
                     with_sampler({.subset = {.samples = samples}, .balanced = true, .epoch_samples = 900}));
  std::map<std::int64_t, int> counts;
  for (const Seen& batch : read_epoch(loader, 4))
    for (const std::int64_t label : batch.labels) ++counts[label];
  ASSERT_EQ(counts.size(), 3u);
  for (const auto& [label, count] : counts) EXPECT_NEAR(count, 300, 8) << label;
}

TEST(Sampler, WithoutReplacementGivesDifferentSamplesInEachEpoch) {
  const TemporaryFolder folder;
  const std::string path = write_part(folder, "shard", "zstd");
  ImageLoader loader(path, with_sampler({.replacement = false, .epoch_samples = 20}));
  std::vector<std::vector<std::uint64_t>> epochs;
  for (const std::uint64_t epoch : {0, 1, 2}) {
    epochs.push_back(sorted(samples_of(read_epoch(loader, epoch))));
    EXPECT_EQ(epochs.back().size(), 20u);
    EXPECT_EQ(std::ranges::adjacent_find(epochs.back()), epochs.back().end());
  }
  EXPECT_NE(epochs[0], epochs[1]);
  EXPECT_NE(epochs[1], epochs[2]);
}

TEST(Sampler, ChangesEachUseOfASampleInItsOwnWay) {
  const TemporaryFolder folder;
  const std::string path = write_part(folder, "shard", "zstd");
  ImageLoaderOptions options = with_sampler({.subset = {.samples = {{17}}}, .epoch_samples = 64});
  options.augment = {.crop_height = 3, .crop_width = 3, .random_crop = true};
  options.echo = 2;
  ImageLoader loader(path, options);
  std::map<std::vector<std::uint8_t>, int> crops;
  for (const Seen& batch : read_epoch(loader, 0))
    for (std::size_t i = 0; i < batch.samples.size(); ++i) {
      const auto first = batch.pixels.begin() + static_cast<std::ptrdiff_t>(i * 27);
      ++crops[{first, first + 27}];
    }
  EXPECT_EQ(crops.size(), 12u);  // all of 4 · 3 boxes among 128 uses
  for (const auto& [pixels, count] : crops) EXPECT_LT(count, 30);
}

TEST(Sampler, IsSharedOutAmongRanksAndResumes) {
  const TemporaryFolder folder;
  const std::string path = write_part(folder, "shard", "zstd");
  for (const SamplerSpec& sampler : samplers())
    for (const std::uint32_t echo : {1u, 2u}) {
      ImageLoaderOptions options = with_sampler(sampler);
      options.batch_size = 4;
      options.echo = echo;
      options.rank_remainder = RankRemainder::drop;
      ImageLoader whole(path, options);
      std::vector<std::uint64_t> expected = samples_of(read_epoch(whole, 3));
      std::vector<std::uint64_t> found;
      for (const std::uint32_t rank : {0u, 1u, 2u}) {
        options.rank = rank;
        options.world_size = 3;
        ImageLoader of_rank(path, options);
        const std::vector<Seen> batches = read_epoch(of_rank, 3);
        const std::vector<std::uint64_t> of_batches = samples_of(batches);
        found.insert(found.end(), of_batches.begin(), of_batches.end());
        static_cast<void>(of_rank.epoch(3));
        ASSERT_NE(of_rank.next(), nullptr);
        options.threads = 5;
        ImageLoader resumed(path, options);
        resumed.restore(of_rank.state());
        EXPECT_EQ(read_epoch(resumed, 3), std::vector<Seen>(batches.begin() + 1, batches.end()));
      }
      EXPECT_LE(expected.size() - found.size(), 2u * echo);
      expected = sorted(expected);
      found = sorted(found);
      EXPECT_TRUE(std::ranges::includes(expected, found));
    }
}

TEST(Sampler, ResumesWithAnotherNumberOfRanks) {
  const TemporaryFolder folder;
  const std::string path = write_part(folder, "shard", "zstd");
  ImageLoaderOptions options = with_sampler({.balanced = true, .epoch_samples = 240});
  options.batch_size = 4;
  options.world_size = 3;
  std::vector<std::uint64_t> found;
  std::string state;
  for (options.rank = 0; options.rank < 3; ++options.rank) {
    ImageLoader loader(path, options);
    static_cast<void>(loader.epoch(1));
    for (int batch = 0; batch < 5; ++batch) {
      const ImageBatch* const next = loader.next();
      found.insert(found.end(), next->samples.begin(), next->samples.end());
    }
    state = loader.state();
  }
  options.rank = 0;
  options.world_size = 1;
  ImageLoader rest(path, options), whole(path, options);
  rest.restore(state);
  const std::vector<std::uint64_t> left = samples_of(read_epoch(rest, 1));
  found.insert(found.end(), left.begin(), left.end());
  EXPECT_EQ(sorted(found), sorted(samples_of(read_epoch(whole, 1))));
}

TEST(Sampler, LeavesOutADamagedChunkWhereverItsSamplesAreDrawn) {
  const TemporaryFolder folder;
  const std::string path = write_part(folder, "shard", "none");
  const std::string damaged = folder.path("damaged.zst");
  std::filesystem::copy_file(path, damaged);
  // Chunk 10, of samples 40 to 43.
  const ByteBuffer stored = read_file(path, 1 << 20), pixels = known_samples(kShape, 40, 1);
  const auto found_at = std::search(stored.begin(), stored.end(), pixels.begin(), pixels.end());
  ASSERT_NE(found_at, stored.end());
  std::fstream file(damaged, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(found_at - stored.begin());
  file.put(static_cast<char>(~*found_at));
  file.close();
  std::size_t left_out = 0;
  for (const SamplerSpec& sampler : samplers())
    for (const Shuffle shuffle : {Shuffle::none, Shuffle::window, Shuffle::global}) {
      ImageLoaderOptions options = with_sampler(sampler, shuffle);
      options.on_corrupt = OnCorrupt::skip;
      ImageLoader whole(path, options), skipping(damaged, options);
      std::vector<std::uint64_t> expected = samples_of(read_epoch(whole, 1));
      const std::vector<std::uint64_t> found = samples_of(read_epoch(skipping, 1));
      const std::size_t drawn = expected.size();
      std::erase_if(expected, [](std::uint64_t sample) { return sample / 4 == 10; });
      EXPECT_EQ(found, expected);
      EXPECT_EQ(skipping.stats().corrupt_samples, drawn - expected.size());
      left_out += drawn - expected.size();
    }
  EXPECT_GT(left_out, 30u);
}

TEST(Sampler, RefusesAStateOfAnother) {
  const TemporaryFolder folder;
  const std::string path = write_part(folder, "shard", "zstd");
  std::vector<SamplerSpec> all = samplers();
  all.emplace_back();
  std::vector<std::string> states;
  for (const SamplerSpec& sampler : all) {
    ImageLoader loader(path, with_sampler(sampler));
    static_cast<void>(loader.epoch(1));
    ASSERT_NE(loader.next(), nullptr);
    states.push_back(loader.state());
  }
  EXPECT_EQ(states.back().find("sampler"), std::string::npos);
  for (std::size_t own = 0; own < all.size(); ++own)
    for (std::size_t other = 0; other < all.size(); ++other) {
      ImageLoader loader(path, with_sampler(all[own]));
      if (own == other) {
        EXPECT_NO_THROW(loader.restore(states[other]));
        continue;
      }
      try {
        loader.restore(states[other]);
        ADD_FAILURE() << own << " took the state of " << other;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::usage);
        EXPECT_NE(std::string(error.what()).find("loader state: sampler: "), std::string::npos)
            << error.what();
      }
    }
}

TEST(Sampler, SaysWhatIsWrong) {
  const TemporaryFolder folder;
  const std::string path = write_part(folder, "shard", "zstd");
  const auto csv = [&folder](const std::string& name, const std::string& text) {
    const std::string at = folder.path(name + ".csv");
    std::ofstream(at) << text;
    return at;
  };
  std::vector<double> odd(kSamples, 1), negative(kSamples, 1);
  odd[17] = std::nan("");
  negative[100] = -0.5;
  const std::vector<std::pair<SamplerSpec, std::string>> cases{
      {{.weights = {1, 2}}, "sampler: 2 weights, expected 103, one for each sample of the source"},
      {{.weights = odd}, "sampler: sample 17: weight nan, expected a finite number from 0"},
      {{.weights = negative}, "sampler: sample 100: weight -0.5, expected a finite number from 0"},
      {{.weights = std::vector<double>(kSamples, 0)}, "sampler: all samples have weight 0"},
      {{.weights = std::vector<double>(kSamples, 1e308)}, "sampler: the sum of the weights is above 1.8e308"},
      {{.weights = negative, .balanced = true},
       "sampler: expected one of weights, class_weights and balanced"},
      {{.class_weights = {{"cat", 1}, {kLong, 1}}}, "sampler: class \"dög\" of 34 samples has no weight"},
      {{.class_weights = {{"cat", 1}, {"dög", 1}, {kLong, 1}, {"7", 1}}},
       "sampler: class \"7\": no sample of"},
      {{.class_weights = {{"cast", 1}}}, "has it; did you mean \"cat\"?"},
      {{.class_weights = {{"cat", 1}, {"cat", 1}}}, "sampler: class \"cat\" is given twice"},
      {{.class_weights = {{"cat", -1}}}, "sampler: class \"cat\": weight -1, expected"},
      {{.subset = {.samples = std::vector<std::uint64_t>{}}}, "subset: has no samples, expected at least 1"},
      {{.subset = {.samples = {{1, 103}}}}, "subset: entry 1: sample 103, expected a number below 103"},
      {{.subset = {.samples = {{4, 1, 4}}}}, "subset: entry 2: sample 4 is given twice, expected each once"},
      {{.subset = {.samples = {{4}}, .classes = {"cat"}}}, "subset: expected one of samples, classes"},
      {{.subset = {.classes = {"cat", "cow"}}}, "subset: class \"cow\": no sample of"},
      {{.subset = {.classes = {"cta"}}}, "has it; did you mean \"cat\"?"},
      {{.subset = {.classes = {"dög", "dög"}}}, "subset: class \"dög\" is given twice"},
      {{.subset = {.label_range = {{5, 9}}}}, "has a label from 5 to 9"},
      {{.subset = {.label_range = {{2, 1}}}}, "subset: labels from 2 to 1, expected two numbers"},
      {{.subset = {.csv = csv("a", "number\n1\n")}}, "a.csv: line 1: has no column \"sample\""},
      {{.subset = {.csv = csv("b", "sample\n1\n1.5\n")}},
       "b.csv: line 3: \"1.5\", expected the number of a sample"},
      {{.subset = {.csv = csv("c", "sample\n1\n\n400\n")}},
       "c.csv: line 4: sample 400, expected a number below 103"},
      {{.subset = {.csv = csv("d", "sample\n1\n2\n1\n")}}, "d.csv: line 4: sample 1 is given twice"},
      {{.subset = {.csv = csv("e", "sample\n")}}, "e.csv: lists no samples"},
      {{.subset = {.csv = csv("f", "file\nno.png\n")}}, "f.csv: line 2: \"no.png\": no sample of"},
      {{.balanced = true, .replacement = false}, "replacement: false needs epoch_samples"},
      {{.replacement = false, .epoch_samples = 104}, "epoch_samples: 104, expected at most 103"},
      {{.epoch_samples = std::uint64_t{1} << 41}, "epoch_samples: 2199023255552, expected at most"}};
  for (const auto& [sampler, expected] : cases) {
    const std::string found = refusal(path, sampler);
    EXPECT_NE(found.find(expected), std::string::npos) << found << "\nexpected: " << expected;
  }
}

TEST(Sampler, SelectsByTheFilesThatAPackNames) {
  const TemporaryFolder folder;
  const std::string path = write_part(folder, "shard", "zstd");
  const std::string csv = folder.path("files.csv");
  // known_parts.h gives samples 9 and 4 these names.
  std::ofstream(csv) << "file,label\nclass/ä image 81.jpg,x\n./class/ä image 16.jpg,y\n";
  ImageLoader loader(path, with_sampler({.subset = {.csv = csv}}));
  EXPECT_EQ(sorted(samples_of(read_epoch(loader, 0))), (std::vector<std::uint64_t>{4, 9}));
}

TEST(Sampler, NeedsClassesForWeightsOfClasses) {
  const TemporaryFolder folder;
  const std::string numbers = write_part(folder, "shard", "zstd", kSamples, 2);
  EXPECT_NE(refusal(numbers, {.balanced = true}).find("sampler: needs samples with class labels"),
            std::string::npos);
  EXPECT_NE(refusal(numbers, {.subset = {.label_range = {{0, 1}}}}).find("needs one label a sample"),
            std::string::npos);
}

}  // namespace
}  // namespace chunkhit
