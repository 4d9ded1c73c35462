// Loaders of the same samples share what stays in memory; of several processes: tests/python/ranks_test.py.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "chunkhit/dataset.h"
#include "chunkhit/image_loader.h"
#include "loaded_batches.h"

namespace chunkhit {
namespace {

constexpr std::uint64_t kFirstChunk = 4096;  // of a shard
constexpr std::uint64_t kChunks = (kSamples + kKnownChunkSamples - 1) / kKnownChunkSamples;

/// Loaders as of two processes that torchrun starts.
class SharedLoaders : public testing::Test {
 protected:
  SharedLoaders() {
    ::setenv("LOCAL_WORLD_SIZE", "2", 1);
    ::setenv("TMPDIR", registry_.path().c_str(), 1);
  }
  ~SharedLoaders() override {
    ::unsetenv("LOCAL_WORLD_SIZE");
    ::setenv("TMPDIR", before_.c_str(), 1);
  }

  std::string before_ = std::filesystem::temp_directory_path();
  TemporaryFolder registry_;
};

TEST_F(SharedLoaders, ReadAndDecodeAChunkOnce) {
  const TemporaryFolder folder;
  for (const auto& [kind, filter] : kKinds)
    for (const Cache cache : {Cache::decoded, Cache::compressed}) {
      const std::string path = write_part(folder, kind, filter);
      const ImageLoaderOptions options{.batch_size = 10, .shuffle = Shuffle::window, .cache = cache};
      ImageLoader first(path, options), second(path, options);
      const std::vector<Seen> expected = read_epoch(first, 0);
      EXPECT_EQ(first.stats().shared_chunks, 0u);
      EXPECT_TRUE(read_epoch(second, 0) == expected);
      EXPECT_EQ(second.stats().shared_chunks, kChunks) << kind << " " << filter;
      EXPECT_EQ(second.stats().notices, std::vector<std::string>());
      if (first.stats().cache == Cache::decoded) {
        EXPECT_EQ(second.stats().chunk_fetches, 0u);
        EXPECT_EQ(second.stats().chunk_misses, 0u);
      }
    }
}

TEST_F(SharedLoaders, ShareWithDatasets) {
  const TemporaryFolder folder;
  const std::string path = write_part(folder, "shard", "zstd");
  ImageDataset dataset(path, {.cache = Cache::decoded});
  std::vector<std::uint8_t> pixels(kShape.byte_count());
  for (const std::uint64_t sample : all_samples()) dataset.read({&sample, 1}, pixels);
  ImageLoader loader(path, {.batch_size = 10, .cache = Cache::decoded});
  expect_known_pixels(read_epoch(loader, 0));
  EXPECT_EQ(loader.stats().shared_chunks, kChunks);
  EXPECT_EQ(loader.stats().chunk_fetches, 0u);
}

// Bytes that were not compared with their hashes are for those who do not ask for it.
TEST_F(SharedLoaders, DoNotTakeWhatWasNotCompared) {
  const TemporaryFolder folder;
  const std::string path = write_part(folder, "shard", "zstd");
  ImageLoaderOptions options{.batch_size = 10, .cache = Cache::decoded, .check_hashes = CheckHashes::never};
  ImageLoader never(path, options);
  read_epoch(never, 0);
  options.check_hashes = CheckHashes::always;
  ImageLoader always(path, options);
  read_epoch(always, 0);
  EXPECT_EQ(always.stats().shared_chunks, 0u);
  EXPECT_EQ(always.stats().chunk_fetches, kChunks);
}

TEST_F(SharedLoaders, LeaveTheSameDamagedChunkOut) {
  const TemporaryFolder folder;
  const std::string path = write_part(folder, "shard", "zstd");
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary).seekp(kFirstChunk + 20) << "damaged";
  ImageLoaderOptions options{.batch_size = 10, .cache = Cache::decoded, .on_corrupt = OnCorrupt::skip};
  ImageLoader first(path, options), second(path, options);
  const std::vector<Seen> expected = read_epoch(first, 0);
  EXPECT_EQ(samples_of(expected).size(), kSamples - kKnownChunkSamples);
  expect_known_pixels(expected);
  EXPECT_TRUE(read_epoch(second, 0) == expected);
  EXPECT_EQ(second.stats().corrupt_chunks, 1u);
  EXPECT_EQ(second.stats().shared_chunks, kChunks - 1);
}

// Eight processes have room for one copy, but none has room for a copy of its own.
TEST_F(SharedLoaders, KeepNoMoreThanFitsWhereMemoryIsNotShared) {
  ::setenv("LOCAL_WORLD_SIZE", "8", 1);
  const TemporaryFolder folder;
  const std::string path = write_part(folder, "shard", "zstd");
  const ImageLoaderOptions options{
      .batch_size = 4, .shuffle = Shuffle::none, .cache_bytes = 5000, .threads = 1};
  ImageLoader shared(path, options);
  EXPECT_EQ(shared.stats().cache, Cache::decoded);
  ASSERT_EQ(::chmod(registry_.path("chunkhit-" + std::to_string(::geteuid())).c_str(), 0777), 0);
  ImageLoader own(path, options);
  EXPECT_EQ(own.stats().cache, Cache::none);
  ASSERT_EQ(own.stats().notices.size(), 1u);
  EXPECT_NE(own.stats().notices[0].find("is open to other users"), std::string::npos);
  expect_known_pixels(read_epoch(own, 0));
}

TEST_F(SharedLoaders, DoNotShareWhereAProcessIsAlone) {
  ::setenv("LOCAL_WORLD_SIZE", "1", 1);
  const TemporaryFolder folder;
  const std::string path = write_part(folder, "shard", "zstd");
  const ImageLoaderOptions options{.batch_size = 10, .cache = Cache::decoded};
  ImageLoader first(path, options), second(path, options);
  read_epoch(first, 0);
  read_epoch(second, 0);
  EXPECT_EQ(second.stats().shared_chunks, 0u);
  EXPECT_EQ(second.stats().chunk_fetches, kChunks);
}

TEST_F(SharedLoaders, DoNotTakeACopyOfThePackNorWhatReplacedIt) {
  const TemporaryFolder folder;
  const std::string path = write_part(folder, "shard", "zstd"), copy = folder.path("copy.zst");
  std::filesystem::copy_file(path, copy);
  const ImageLoaderOptions options{.batch_size = 10, .cache = Cache::decoded};
  ImageLoader first(path, options);
  read_epoch(first, 0);
  ImageLoader second(copy, options);
  read_epoch(second, 0);
  EXPECT_EQ(second.stats().shared_chunks, 0u);
  std::filesystem::rename(copy, path);
  ImageLoader third(path, options);
  expect_known_pixels(read_epoch(third, 0));
  EXPECT_EQ(third.stats().shared_chunks, kChunks) << "the copy is the pack now";
}

}  // namespace
}  // namespace chunkhit
