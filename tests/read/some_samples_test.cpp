// Chunks of which some samples are read before the chunk is loaded.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "cache/chunk_cache.h"
#include "cache/chunk_set.h"
#include "chunkhit/dataset.h"
#include "chunkhit/error.h"
#include "chunkhit/image_loader.h"
#include "support/depth.h"
#include "support/known_parts.h"
#include "support/temporary_folder.h"

namespace chunkhit {
namespace {

// Chunks of 590 KiB: in a shard each of four frames, of 37 samples and less.
constexpr SampleShape kLarge{30, 39, 3, Layout::nhwc};
constexpr std::uint64_t kInChunk = 128, kChunks = 18, kAll = kChunks * kInChunk - 5;

std::string write_large_part(const TemporaryFolder& folder, const std::string& name,
                             const std::string& filter) {
  PartSpec spec = known_spec(kLarge, filter);
  spec.chunk_samples = kInChunk;
  const std::string path = folder.path(name + filter);
  write_known_part(container(name), path, spec, kAll);
  return path;
}

const std::vector<std::pair<std::string, std::string>> kLargeKinds{
    {"shard", "photo"}, {"shard", "zstd"}, {"shard", "none"}, {"hdf5", "none"}, {"hdf5", "zstd"}};

bool is_known(std::uint64_t sample, const std::uint8_t* pixels) {
  const ByteBuffer expected = known_samples(kLarge, sample, 1);
  return std::equal(expected.begin(), expected.end(), pixels);
}

void flip_byte(const std::string& path, std::uint64_t at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(at));
  const char byte = static_cast<char>(file.get() ^ 1);
  file.seekp(static_cast<std::streamoff>(at));
  file.put(byte);
}

TEST(SomeSamples, AreThoseOfTheChunkInEveryOrderContainerAndCache) {
  const TemporaryFolder folder;
  std::size_t point = 0;
  for (const auto& [name, filter] : kLargeKinds) {
    const std::string path = write_large_part(folder, name, filter);
    for (const Shuffle shuffle : {Shuffle::window, Shuffle::global})
      for (const Cache cache : {Cache::decoded, Cache::compressed, Cache::none})
        for (const std::uint32_t threads : {1, 3}) {
          if (point++ % sweep_stride(5) != 0) continue;
          SCOPED_TRACE(name + " " + filter + " " + std::to_string(static_cast<int>(shuffle)) + " " +
                       std::to_string(static_cast<int>(cache)));
          ImageLoader loader(path, {.batch_size = 50,
                                    .shuffle = shuffle,
                                    .seed = 3,
                                    .window_chunks = 17,
                                    .cache = cache,
                                    .threads = threads});
          std::vector<int> seen(kAll);
          for (const ImageBatch& batch : loader.epoch(0))
            for (std::size_t i = 0; i < batch.samples.size(); ++i) {
              ++seen[batch.samples[i]];
              ASSERT_TRUE(is_known(batch.samples[i], batch.pixels().data() + i * kLarge.byte_count()))
                  << "sample " << batch.samples[i];
              ASSERT_EQ(batch.labels()[i], static_cast<std::int64_t>(batch.samples[i] % 3));
            }
          ASSERT_EQ(std::count(seen.begin(), seen.end(), 1), static_cast<std::ptrdiff_t>(kAll));
        }
  }
}

TEST(SomeSamples, AreResizedInSlicesAsByOneThread) {
  const TemporaryFolder folder;
  const std::string path = write_large_part(folder, "shard", "photo");
  const auto first_batch = [&](std::uint32_t threads) {
    ImageLoader loader(path, {.batch_size = 200,
                              .shuffle = Shuffle::window,
                              .seed = 3,
                              .window_chunks = 17,
                              .augment = {.resized_crop = {.height = 20, .width = 22}},
                              .cache = Cache::decoded,
                              .threads = threads});
    const ImageBatch& batch = *loader.next();
    return std::pair(std::vector(batch.samples.begin(), batch.samples.end()),
                     std::vector(batch.pixels().begin(), batch.pixels().end()));
  };
  EXPECT_EQ(first_batch(3), first_batch(1));
}

TEST(SomeSamples, AreReadUntilAChunkIsUsedAgain) {
  const TemporaryFolder folder;
  std::vector<std::unique_ptr<ChunkReader>> parts;
  parts.push_back(open_part(write_large_part(folder, "shard", "photo")));
  const ChunkSet chunks(std::move(parts));
  const std::unique_ptr<ChunkCache> cache =
      make_chunk_cache(chunks, {.cache = Cache::none, .kept_chunks = 3, .chunks_ahead = 3});
  ASSERT_TRUE(cache->reads_some());
  ByteBuffer scratch, room;
  const auto reads_some = [&](std::size_t chunk, const std::vector<std::uint64_t>& wanted) {
    const ChunkCache::Pin pin = cache->acquire_some(chunk, wanted, scratch, room);
    for (const std::uint64_t each : wanted)
      EXPECT_TRUE(is_known(chunk * kInChunk + each, pin.samples() + each * kLarge.byte_count()));
    return pin.held().held == Held::room;
  };
  EXPECT_TRUE(reads_some(1, {5, 60, 127}));
  EXPECT_FALSE(reads_some(1, {7}));  // used again: loaded
  EXPECT_FALSE(reads_some(1, {8}));  // and there
  EXPECT_TRUE(reads_some(2, {0}));
  for (const std::size_t chunk : {3, 4, 5}) EXPECT_TRUE(reads_some(chunk, {9, 9}));
  EXPECT_TRUE(reads_some(2, {1}));  // used again, but after as many others as stay
  EXPECT_FALSE(reads_some(2, {1}));
  std::vector<std::uint64_t> many(kInChunk / 4 + 1);
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = i;
  EXPECT_FALSE(reads_some(6, many));  // more than a quarter
  cache->want(7);
  EXPECT_FALSE(reads_some(7, {3}));
  cache->unwant(7);
}

TEST(SomeSamples, AreNotReadOfChunksInOneFrame) {
  const TemporaryFolder folder;
  for (const auto& [name, filter] : {std::pair{"hdf5", "zstd"}, std::pair{"hdf5", "deflate"}}) {
    std::vector<std::unique_ptr<ChunkReader>> parts;
    parts.push_back(open_part(write_large_part(folder, name, filter)));
    const ChunkSet chunks(std::move(parts));
    EXPECT_FALSE(make_chunk_cache(chunks, {.kept_chunks = 3, .chunks_ahead = 3})->reads_some()) << filter;
  }
}

TEST(SomeSamples, OfADamagedChunkAreNamedOrLeftOut) {
  const TemporaryFolder folder;
  for (const auto& [name, filter] : {std::pair{"shard", "photo"}, std::pair{"hdf5", "none"}}) {
    const std::string path = write_large_part(folder, name, filter);
    flip_byte(path, open_part(path)->chunks()[2].offset + 777);
    for (const Shuffle shuffle : {Shuffle::window, Shuffle::global}) {
      const ImageLoaderOptions options{
          .batch_size = 500, .shuffle = shuffle, .window_chunks = 17, .cache = Cache::decoded, .threads = 2};
      ImageLoader loader(path, options);
      try {
        for (const ImageBatch& batch : loader.epoch(0)) EXPECT_FALSE(batch.samples.empty());
        ADD_FAILURE() << filter << ": read a damaged chunk";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::bad_data);
        EXPECT_NE(std::string(error.what()).find("chunk 2 (samples 256-383)"), std::string::npos)
            << error.what();
      }
      ImageLoaderOptions skips = options;
      skips.on_corrupt = OnCorrupt::skip;
      ImageLoader rest(path, skips);
      std::uint64_t samples = 0;
      for (const ImageBatch& batch : rest.epoch(0)) samples += batch.samples.size();
      EXPECT_EQ(samples, kAll - kInChunk) << filter;
      EXPECT_EQ(rest.stats().corrupt_chunks, 1u);
    }
  }
}

TEST(SomeSamples, AreWhatADatasetGives) {
  const TemporaryFolder folder;
  for (const auto& [name, filter] : kLargeKinds) {
    const std::string path = write_large_part(folder, name, filter);
    for (const Cache cache : {Cache::decoded, Cache::compressed, Cache::none}) {
      ImageDataset dataset(path, {.cache = cache});
      const std::vector<std::uint64_t> wanted{kAll - 1, 130, 129, 130, 0, 1500, kAll - 130};
      for (int again = 0; again < 3; ++again) {
        std::vector<std::uint8_t> pixels(wanted.size() * kLarge.byte_count());
        dataset.read(wanted, pixels);
        for (std::size_t i = 0; i < wanted.size(); ++i)
          EXPECT_TRUE(is_known(wanted[i], pixels.data() + i * kLarge.byte_count()))
              << name << " " << filter << ": sample " << wanted[i];
      }
    }
  }
}

}  // namespace
}  // namespace chunkhit
