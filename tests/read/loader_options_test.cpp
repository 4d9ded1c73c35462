// What a loader makes of its options, and says of those that it cannot serve.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <string>

#include "chunkhit/image_loader.h"
#include "chunkhit/sparse_loader.h"
#include "loaded_batches.h"
#include "loaded_rows.h"
#include "support/simulated_clock.h"

namespace chunkhit {
namespace {

/// Expects an Error of this code whose text has the words.
template <class Work>
void expect_error(ErrorCode code, const std::string& words, const Work& work) {
  try {
    work();
    ADD_FAILURE() << "nothing was thrown, expected: " << words;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
  }
}

const BatchAllocator kNoMemoryAtAll{[](std::size_t) -> void* { return nullptr; }, [](void*, std::size_t) {}};

TEST(LoaderOptions, SayHowMuchMemoryBatchesWouldHaveTaken) {
  const TemporaryFolder folder;
  const std::string path = write_part(folder, "hdf5", "none");
  // A sample has 90 bytes.
  expect_error(ErrorCode::try_again, "batches: 8 of 900.0 kB each", [&] {
    ImageLoader(path, {.batch_size = 10'000, .threads = 2, .prefetch = 7, .allocator = kNoMemoryAtAll});
  });
  expect_error(ErrorCode::try_again, "lower `batch_size`, `prefetch` or `threads`", [&] {
    SparseLoader(write_shard(folder, known_shape(ValueType::u8, 1)), {.allocator = kNoMemoryAtAll});
  });
}

TEST(LoaderOptions, RefuseToNormalizeBytes) {
  const TemporaryFolder folder;
  const std::string path = write_part(folder, "hdf5", "none");
  expect_error(ErrorCode::usage, "normalize: is for dtype float32", [&] {
    ImageLoader(path, {.normalize = {.mean = {0.5F, 0.5F, 0.5F}}});
  });
  expect_error(ErrorCode::usage, "normalize_like: is for dtype float32",
               [&] { ImageLoader(path, {.normalize_like = path}); });
  expect_error(ErrorCode::usage, "normalize: mean goes with std, both or neither", [&] {
    ImageLoader(path, {.dtype = Dtype::float32, .normalize = {.mean = {0.5F, 0.5F, 0.5F}}});
  });
}

TEST(LoaderOptions, LeaveAugmentingToACallerWhoseStatesRecordIt) {
  const TemporaryFolder folder;
  const std::string path = write_part(folder, "hdf5", "none");
  const AugmentSpec flip{.flip_horizontal = 1};
  ImageLoader plain(path, {}), flips(path, {.augment = flip}),
      leaves(path, {.augment = flip, .applies_augment = false});
  const ImageBatch *const stored = plain.next(), *const flipped = flips.next(), *const left = leaves.next();
  EXPECT_TRUE(std::ranges::equal(left->pixels(), stored->pixels()));
  EXPECT_FALSE(std::ranges::equal(left->pixels(), flipped->pixels()));
  EXPECT_EQ(leaves.state(), flips.state());
  expect_error(ErrorCode::usage, "augment.flip_horizontal: 0, expected 1",
               [&] { leaves.restore(plain.state()); });
}

TEST(LoaderOptions, KeepSamplesDecodedWhereMemorySuffices) {
  const TemporaryFolder folder;
  const std::string raw = write_part(folder, "hdf5", "none"), packed = write_part(folder, "shard", "photo");
  for (const std::string& path : {raw, packed})
    for (const Shuffle shuffle : {Shuffle::none, Shuffle::window, Shuffle::global})
      EXPECT_EQ(ImageLoader(path, {.shuffle = shuffle}).stats().cache, Cache::decoded);
}

TEST(LoaderOptions, PointToPackVerifyWhereAChunkIsDamaged) {
  const TemporaryFolder folder;
  const std::string path = write_part(folder, "shard", "zstd");
  const auto at = static_cast<std::streamoff>(open_part(path)->chunks()[0].offset + 9);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(at);
  const char byte = static_cast<char>(file.get() ^ 4);
  file.seekp(at);
  file.put(byte);
  file.close();
  expect_error(ErrorCode::bad_data, "; pack-verify shows what else is damaged",
               [&] { static_cast<void>(ImageLoader(path).next()); });
}

TEST(LoaderOptions, LeaveAPauseBehindAnEpochOutOfTheCallersTime) {
  const TemporaryFolder folder;
  ImageLoader loader(write_part(folder, "hdf5", "none"), {.batch_size = 50});
  SimulatedClock clock;
  read_epoch(loader, 0);
  clock.sleep(std::chrono::hours(100));
  for (const ImageBatch& batch : loader.epoch(1))
    if (batch.index == 1) break;
  clock.sleep(std::chrono::hours(10));
  read_epoch(loader, 0);
  const LoaderStats stats = loader.stats();
  EXPECT_EQ(std::floor(stats.seconds / 36000), 1);
  EXPECT_EQ(std::floor(stats.step_seconds / 36000), 1) << "a broken-off epoch has no end yet";
  EXPECT_NEAR(stats.seconds, stats.wait_seconds + stats.step_seconds, 1e-6);
}

}  // namespace
}  // namespace chunkhit
