#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <vector>

#include "chunkhit/image_loader.h"
#include "loaded_batches.h"

namespace chunkhit {
namespace {

using std::chrono::milliseconds;

TEST(LoaderWait, ChangesNothingOfWhatNextGives) {
  const TemporaryFolder folder;
  const ImageLoaderOptions options{.batch_size = 10, .shuffle = Shuffle::window, .threads = 2, .prefetch = 1};
  const std::string path = write_part(folder, "shard", "zstd");
  ImageLoader plain(path, options), waiting(path, options);
  for (const std::uint64_t epoch : {0, 1}) {
    const std::vector<Seen> expected = read_epoch(plain, epoch);
    std::vector<Seen> found;
    static_cast<void>(waiting.epoch(epoch));
    for (const ImageBatch* batch = nullptr;; found.push_back(seen(*batch))) {
      while (!waiting.wait_for(milliseconds(1))) continue;
      batch = waiting.next();
      if (batch == nullptr) break;
    }
    EXPECT_EQ(found, expected);
  }
}

TEST(LoaderWait, IsOverAtTheEndOfAnEpoch) {
  const TemporaryFolder folder;
  ImageLoader loader(write_part(folder, "shard", "zstd"), {.batch_size = 10});
  static_cast<void>(read_epoch(loader, 0));
  EXPECT_TRUE(loader.wait_for(milliseconds(0)));
  EXPECT_EQ(loader.next(), nullptr);
}

TEST(LoaderWait, GivesTheLastBatchBackAndLeavesTheStateAlone) {
  const TemporaryFolder folder;
  ImageLoader loader(write_part(folder, "shard", "zstd"), {.batch_size = 10});
  ASSERT_NE(loader.next(), nullptr);
  const std::shared_ptr<const ImageBatch> kept = loader.retain();
  const Seen expected = seen(*kept);
  const std::string state = loader.state();
  while (!loader.wait_for(milliseconds(1))) continue;
  EXPECT_EQ(loader.retain(), nullptr);
  EXPECT_EQ(loader.state(), state);
  EXPECT_EQ(loader.stats().retained_batches, 1);
  ASSERT_NE(loader.next(), nullptr);
  EXPECT_EQ(seen(*kept), expected);
}

TEST(LoaderWait, CountsAsWaiting) {
  const TemporaryFolder folder;
  ImageLoader loader(write_part(folder, "shard", "zstd"), {.batch_size = 10});
  while (!loader.wait_for(milliseconds(1))) continue;
  EXPECT_GT(loader.stats().wait_seconds, 0);
  EXPECT_EQ(loader.stats().batches, 0);
  EXPECT_EQ(loader.stats().step_seconds, 0);
}

}  // namespace
}  // namespace chunkhit
