#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
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

#ifdef __SANITIZE_THREAD__  // which ends a forked child that makes a thread
constexpr bool kForkedChildMayHaveThreads = false;
#else
constexpr bool kForkedChildMayHaveThreads = true;
#endif

/// Flips a bit in the midst of the stored bytes of a chunk; done twice, the file is as before.
void damage(const std::string& path, std::size_t chunk = 5) {
  const std::uint64_t at = open_part(path)->chunks()[chunk].offset + 9;
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(at));
  const char byte = static_cast<char>(file.get() ^ 4);
  file.seekp(static_cast<std::streamoff>(at));
  file.put(byte);
}

TEST(ImageLoader, NamesADamagedChunkOrLeavesItOut) {
  const TemporaryFolder folder;
  for (const auto& [kind, filter] : kKinds) {
    const std::string path = write_part(folder, kind, filter);
    damage(path);
    for (const Shuffle shuffle : {Shuffle::none, Shuffle::window, Shuffle::global}) {
      ImageLoader strict(path, {.batch_size = 10, .shuffle = shuffle, .threads = 2});
      try {
        read_epoch(strict, 0);
        ADD_FAILURE() << "no error was seen";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::bad_data);
        EXPECT_NE(std::string(error.what()).find("chunk 5 (samples 20-23)"), std::string::npos)
            << error.what();
      }
      ImageLoader lenient(
          path, {.batch_size = 10, .shuffle = shuffle, .threads = 2, .on_corrupt = OnCorrupt::skip});
      const std::vector<Seen> batches = read_epoch(lenient, 0);
      expect_known_pixels(batches);
      EXPECT_EQ(samples_of(batches).size(), kSamples - 4);
      EXPECT_EQ(lenient.stats().corrupt_samples, 4u);
      EXPECT_EQ(lenient.stats().corrupt_chunks, 1u);
    }
  }
}

TEST(ImageLoader, PassesOverBatchesOfWhichNothingIsLeft) {
  const TemporaryFolder folder;
  const std::string path = write_part(folder, "hdf5", "none");
  damage(path);
  ImageLoader loader(path, {.batch_size = 2, .on_corrupt = OnCorrupt::skip});
  for (const std::uint64_t epoch : {0, 1}) {
    const std::vector<Seen> batches = read_epoch(loader, epoch);
    for (const Seen& batch : batches) EXPECT_FALSE(batch.samples.empty());
    EXPECT_EQ(batches.size(), (kSamples + 1) / 2 - 2);
  }
}

TEST(ImageLoader, ChecksHashesAlwaysWhereItIsToldTo) {
  const TemporaryFolder folder;
  for (const Shuffle shuffle : {Shuffle::none, Shuffle::window, Shuffle::global}) {
    const std::string path = write_part(folder, "hdf5", "none");
    ImageLoader loader(path, {.batch_size = 10,
                              .shuffle = shuffle,
                              .window_chunks = 3,
                              .cache = Cache::none,
                              .threads = 2,
                              .check_hashes = CheckHashes::always});
    EXPECT_EQ(samples_of(read_epoch(loader, 0)).size(), kSamples);
    EXPECT_EQ(samples_of(read_epoch(loader, 1)).size(), kSamples);
    damage(path);
    EXPECT_THROW(
        {
          read_epoch(loader, 2);
          read_epoch(loader, 3);  // of the second, some chunks were read ahead
        },
        Error);
    std::filesystem::remove(path);
  }
}

/// What iterating an epoch throws; empty when it throws nothing.
std::string error_of(ImageLoader& loader, std::uint64_t epoch) {
  try {
    read_epoch(loader, epoch);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// Chunk 0 is in the first batch of order none, chunk 20 in a later one.
TEST(ImageLoader, GivesTheSameErrorAgainUntilTheFileIsMended) {
  const TemporaryFolder folder;
  for (const auto& [kind, filter] : kKinds)
    for (const std::size_t chunk : {0, 20})
      for (const Cache cache : {Cache::decoded, Cache::compressed, Cache::none}) {
        const std::string path = write_part(folder, kind, filter);
        ImageLoader whole(path, {.batch_size = 10});
        const std::vector<Seen> expected = read_epoch(whole, 0);
        damage(path, chunk);
        ImageLoader loader(path, {.batch_size = 10, .cache = cache, .threads = 2});
        const std::string error = error_of(loader, 0);
        EXPECT_NE(error.find("chunk " + std::to_string(chunk) + " "), std::string::npos) << error;
        EXPECT_THROW(static_cast<void>(loader.next()), Error) << "the error is not passed over";
        EXPECT_EQ(error_of(loader, 0), error);
        EXPECT_EQ(error_of(loader, 1), error);
        const std::string state = loader.state();
        loader.restore(state);
        EXPECT_EQ(error_of(loader, 1), error);
        damage(path, chunk);
        EXPECT_TRUE(read_epoch(loader, 0) == expected) << kind << " " << filter << " chunk " << chunk;
        loader.restore(state);
        const std::vector<Seen> rest = read_epoch(loader, 1);
        EXPECT_EQ(rest.size(), expected.size() - chunk * kKnownChunkSamples / 10);
        EXPECT_TRUE(std::equal(rest.rbegin(), rest.rend(), expected.rbegin()));
      }
}

TEST(ImageLoader, KeepsTheOrderOfABatchThatSamplesAreLeftOutOf) {
  const TemporaryFolder folder;
  for (const Shuffle shuffle : {Shuffle::window, Shuffle::global})
    for (const std::size_t label_columns : {1, 3}) {
      const std::string path = write_part(folder, "shard", "photo", kSamples, label_columns);
      const ImageLoaderOptions options{.batch_size = 40,
                                       .shuffle = shuffle,
                                       .cache = Cache::none,
                                       .threads = 2,
                                       .on_corrupt = OnCorrupt::skip};
      ImageLoader whole(path, options);
      std::vector<std::uint64_t> expected = samples_of(read_epoch(whole, 0));
      std::erase_if(expected, [](std::uint64_t sample) { return sample / kKnownChunkSamples == 5; });
      damage(path);
      ImageLoader loader(path, options);
      std::vector<std::uint64_t> found;
      for (const ImageBatch& batch : loader.epoch(0))
        for (std::size_t i = 0; i < batch.samples.size(); ++i) {
          found.push_back(batch.samples[i]);
          const ByteBuffer pixels = known_samples(kShape, batch.samples[i], 1);
          EXPECT_TRUE(std::equal(pixels.begin(), pixels.end(),
                                 batch.pixels().subspan(i * pixels.size(), pixels.size()).begin()));
          if (label_columns == 3) {
            EXPECT_EQ(batch.label_values()[i * 3], static_cast<float>(batch.samples[i]));
          }
        }
      EXPECT_EQ(found, expected);
    }
}

TEST(ImageLoader, UsesTheCallersMemory) {
  const TemporaryFolder folder;
  const std::string path = write_part(folder, "hdf5", "none");
  std::vector<void*> given;
  std::size_t returned = 0;
  {
    ImageLoader loader(path, {.batch_size = 8,
                              .threads = 2,
                              .allocator = {[&](std::size_t bytes) {
                                              given.push_back(std::aligned_alloc(64, (bytes + 63) / 64 * 64));
                                              return given.back();
                                            },
                                            [&](void* memory, std::size_t) {
                                              std::free(memory);
                                              ++returned;
                                            }}});
    for (const ImageBatch& batch : loader.epoch(0))
      EXPECT_TRUE(std::find(given.begin(), given.end(), batch.pixels().data()) != given.end());
  }
  EXPECT_FALSE(given.empty());
  EXPECT_EQ(given.size(), returned);
}

TEST(ImageLoader, RefusesOptionsThatMakeNoSense) {
  const TemporaryFolder folder;
  const std::string path = write_part(folder, "hdf5", "deflate");
  const std::vector<ImageLoaderOptions> wrong{
      {.batch_size = 0},
      {.window_chunks = 0},
      {.rank = 2, .world_size = 2},
      {.world_size = 0},
      {.echo = 0},
      {.prefetch = 0},
      {.batch_size = 1000, .drop_last = true},
      {.cache = Cache::decoded, .cache_bytes = 1000},
      {.shuffle = Shuffle::window, .cache = Cache::none, .cache_bytes = 500}};
  for (const ImageLoaderOptions& options : wrong) {
    try {
      ImageLoader loader(path, options);
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::usage) << error.what();
    }
  }
}

TEST(ImageLoader, TellsAForkedChildToMakeItsOwn) {
  const TemporaryFolder folder;
  const std::string path = write_part(folder, "hdf5", "none");
  ImageLoader loader(path, {.batch_size = 8});
  static_cast<void>(loader.epoch(0));
  ASSERT_NE(loader.next(), nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      static_cast<void>(loader.next());
    } catch (const Error& error) {
      if (std::string(error.what()).find("fork") == std::string::npos) ::_exit(8);
      if (!kForkedChildMayHaveThreads) ::_exit(7);
      loader = ImageLoader(path, {.batch_size = 8});
      ::_exit(loader.next() != nullptr ? 7 : 9);
    }
    ::_exit(10);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_NE(loader.next(), nullptr);
}

TEST(ImageDataset, ReadsAnySamples) {
  const TemporaryFolder folder;
  for (const auto& [kind, filter] : kKinds)
    for (const Cache cache : {Cache::automatic, Cache::decoded, Cache::compressed, Cache::none}) {
      const ImageDataset dataset(write_part(folder, kind, filter), {.cache = cache});
      const std::vector<std::uint64_t> wanted{102, 0, 50, 50, 3, 101};
      std::vector<std::uint8_t> out(wanted.size() * kShape.byte_count());
      dataset.read(wanted, out);
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        const ByteBuffer expected = known_samples(kShape, wanted[i], 1);
        ASSERT_TRUE(std::equal(expected.begin(), expected.end(),
                               out.begin() + static_cast<std::ptrdiff_t>(i * kShape.byte_count())));
        EXPECT_EQ(dataset.label(wanted[i]), static_cast<std::int64_t>(wanted[i] % 3));
      }
      EXPECT_THROW(dataset.read(std::vector<std::uint64_t>{103}, std::span(out).first(kShape.byte_count())),
                   Error);
    }
}

}  // namespace
}  // namespace chunkhit
