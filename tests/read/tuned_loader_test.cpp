// Loaders whose threads and batches ahead are chosen while they run.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "base/resources.h"
#include "chunkhit/image_loader.h"
#include "chunkhit/sparse_loader.h"
#include "loaded_batches.h"
#include "loaded_rows.h"
#include "read/image_source.h"
#include "read/reader_spec.h"

namespace chunkhit {
namespace {

EpochReaderSpec automatic_spec(std::uint64_t memory_bytes, std::uint64_t cache_bytes = 0) {
  return epoch_reader_spec(ImageLoaderOptions{.batch_size = 10,
                                              .cache_bytes = cache_bytes,
                                              .memory_bytes = memory_bytes,
                                              .threads = kAutomatic,
                                              .prefetch = kAutomatic});
}

std::string message_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(TunedLoader, GivesTheSameBatchesAsAFixedOne) {
  const TemporaryFolder folder;
  for (const auto& [kind, filter] : kKinds)
    for (const Shuffle shuffle : {Shuffle::none, Shuffle::window, Shuffle::global}) {
      const std::string part = write_part(folder, kind, filter);
      ImageLoader fixed(part, {.batch_size = 7, .shuffle = shuffle, .threads = 1});
      ImageLoader tuned(part,
                        {.batch_size = 7, .shuffle = shuffle, .threads = kAutomatic, .prefetch = kAutomatic});
      for (std::uint64_t epoch = 0; epoch < 3; ++epoch)
        EXPECT_EQ(read_epoch(tuned, epoch), read_epoch(fixed, epoch)) << kind << " " << filter;
    }
}

TEST(TunedLoader, BeginsWithTheCpusAndFourBatches) {
  const TemporaryFolder folder;
  const ImageLoader images(write_part(folder, "hdf5", "none"),
                           {.batch_size = 7, .threads = kAutomatic, .prefetch = kAutomatic});
  EXPECT_EQ(images.stats().threads, allowed_cpus());
  EXPECT_EQ(images.stats().prefetch, 4u);
  const SparseLoader rows(write_shard(folder, known_shape(ValueType::u8, 1)),
                          {.threads = kAutomatic, .prefetch = kAutomatic});
  EXPECT_EQ(rows.stats().threads, allowed_cpus());
  EXPECT_TRUE(rows.stats().tuning.empty());
}

TEST(TunedLoader, LeavesWhatIsFixedAsItIs) {
  const EpochReaderSpec spec = epoch_reader_spec(ImageLoaderOptions{.threads = 3, .prefetch = kAutomatic});
  EXPECT_EQ(spec.max_threads, 3u);
  EXPECT_FALSE(spec.tunes_threads);
  EXPECT_TRUE(spec.tunes_prefetch);
}

TEST(TunedLoader, FillsAQuarterOfMemoryBytesWithBatches) {
  // 100 bytes a batch: 12 of them, one of which the caller holds.
  const EpochReaderSpec spec = within_memory(automatic_spec(4800), 100);
  EXPECT_EQ(spec.max_prefetch, 11u);
  EXPECT_EQ(spec.max_threads, 11u);
  EXPECT_EQ(spec.cache_bytes, 4800u - 1200u);
  const EpochReaderSpec little = within_memory(automatic_spec(1000), 100);
  EXPECT_EQ(little.max_prefetch, 1u);
  EXPECT_EQ(little.threads, 1u);
  EXPECT_EQ(within_memory(automatic_spec(1ULL << 40), 100).max_prefetch, 64u);
}

TEST(TunedLoader, SharesMemoryBytesBetweenChunksAndBatches) {
  EpochReaderSpec spec =
      epoch_reader_spec(ImageLoaderOptions{.memory_bytes = 2000, .threads = 1, .prefetch = 4});
  EXPECT_EQ(within_memory(spec, 100).cache_bytes, 1500u);
  EXPECT_EQ(message_of([&] { static_cast<void>(within_memory(spec, 400)); }),
            "memory_bytes: 5 batches of 400 B each are held, 2.0 kB are given: give more, or lower "
            "batch_size, prefetch or threads");
  spec.cache_bytes = 1501;
  EXPECT_EQ(message_of([&] { static_cast<void>(within_memory(spec, 100)); }),
            "cache_bytes: 1.5 kB and 5 batches of 100 B each are more than memory_bytes, 2.0 kB: lower "
            "cache_bytes, or give more");
}

TEST(TunedLoader, TakesAsManyThreadsAsMemoryHasRoomFor) {
  const TemporaryFolder folder;
  const std::string part = write_part(folder, "shard", "zstd");
  const ImageSource source(std::vector{part}, {});
  const std::uint64_t room_of_one = source.chunks().max_stored_bytes() + source.chunks().max_chunk_bytes();
  // All samples decoded, and what so many threads need.
  const auto max_threads = [&](std::uint64_t threads) {
    EpochReaderSpec spec = automatic_spec(0, source.chunks().decoded_bytes() + threads * room_of_one);
    EXPECT_EQ(plan_reader(source.chunks(), 1, spec).cache, Cache::decoded);
    EXPECT_LE(spec.threads, spec.max_threads);
    return spec.max_threads;
  };
  EXPECT_EQ(max_threads(1000), max_tuned_threads(allowed_cpus()));
  EXPECT_LE(max_threads(allowed_cpus() + 1), allowed_cpus() + 1);
  EXPECT_GE(max_threads(allowed_cpus()), allowed_cpus());
}

}  // namespace
}  // namespace chunkhit
