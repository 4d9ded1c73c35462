// Storage that gives other bytes than were packed: it is an error or a sample that is left out, in every
// order and cache, and never another pixel.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "changed_reads.h"
#include "chunkhit/dataset.h"
#include "chunkhit/error.h"
#include "chunkhit/image_loader.h"
#include "loaded_batches.h"

namespace chunkhit {
namespace {

constexpr Shuffle kShuffles[] = {Shuffle::none, Shuffle::window, Shuffle::global};
constexpr Cache kCaches[] = {Cache::decoded, Cache::compressed, Cache::none};

std::string write_raw_part(const TemporaryFolder& folder, const std::string& name, bool is_old = false) {
  const std::string path = folder.path(name);
  write_known_part(container("hdf5"), path, known_spec(kShape, "none"), kSamples, is_old);
  return path;
}

/// Calls look(options, stays) with every order and cache; whether all chunks stay in memory.
void for_all_options(const std::function<void(const ImageLoaderOptions&, bool stays)>& look) {
  for (const Shuffle shuffle : kShuffles)
    for (const Cache cache : kCaches) {
      SCOPED_TRACE("order " + std::to_string(static_cast<int>(shuffle)) + ", cache " +
                   std::to_string(static_cast<int>(cache)));
      look({.batch_size = 10, .shuffle = shuffle, .window_chunks = 4, .cache = cache, .threads = 2},
           cache != Cache::none);
    }
}

void evict(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY);
  ::fdatasync(fd);
  ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  ::close(fd);
}

/// The offset of a byte of sample 29, in chunk 7.
std::uint64_t byte_of_a_sample(const std::string& path) {
  return open_part(path)->chunks()[7].offset + kShape.byte_count() + 9;
}

// Read-ahead brought the pages back from storage, and what was found in memory was not hashed.
TEST(ChangedStorage, BehindAnEvictedPageIsFound) {
  const TemporaryFolder folder;
  const std::string path = write_raw_part(folder, "part");
  for_all_options([&](const ImageLoaderOptions& options, bool stays) {
    ImageLoader loader(path, options);
    EXPECT_EQ(epochs_end(loader, 0, 2), 0);
    evict(path);
    {
      const ChangedReads changed(byte_of_a_sample(path));
      EXPECT_EQ(epochs_end(loader, 2, 5), stays ? 0 : 65);
    }
    EXPECT_EQ(epochs_end(loader, 5, 7), 0) << "it is whole again";
  });
}

TEST(ChangedStorage, IsFoundInTheFirstEpochOfEveryCache) {
  const TemporaryFolder folder;
  for (const bool is_old : {false, true}) {
    const std::string path = write_raw_part(folder, is_old ? "old" : "part", is_old);
    for_all_options([&](ImageLoaderOptions options, bool) {
      const ChangedReads changed(byte_of_a_sample(path));
      ImageLoader loader(path, options);
      EXPECT_EQ(epochs_end(loader, 0, 1), 65);
      options.on_corrupt = OnCorrupt::skip;
      ImageLoader skips(path, options);
      EXPECT_EQ(epochs_end(skips, 0, 1), 0);
      EXPECT_EQ(skips.stats().corrupt_chunks, 1u);
      EXPECT_EQ(skips.stats().corrupt_samples, kKnownChunkSamples) << "they share a hash, or a chunk";
      EXPECT_EQ(skips.stats().samples, kSamples - kKnownChunkSamples);
    });
  }
}

// The stamp of the file, its size and times, was the same.
TEST(ChangedStorage, WithTheTimesOfBeforeIsFound) {
  const TemporaryFolder folder;
  const std::string path = write_raw_part(folder, "part");
  for_all_options([&](const ImageLoaderOptions& options, bool stays) {
    const timespec whole_second[] = {{1'600'000'000, 0}, {1'600'000'000, 0}};
    const int fd = ::open(path.c_str(), O_RDWR);
    ASSERT_EQ(::futimens(fd, whole_second), 0);
    ImageLoader loader(path, options);
    EXPECT_EQ(epochs_end(loader, 0, 2), 0);
    const auto at = static_cast<off_t>(byte_of_a_sample(path));
    char byte = 0;
    ASSERT_EQ(::pread(fd, &byte, 1, at), 1);
    const char other = static_cast<char>(byte ^ 4);
    ASSERT_EQ(::pwrite(fd, &other, 1, at), 1);
    ASSERT_EQ(::futimens(fd, whole_second), 0);
    EXPECT_EQ(epochs_end(loader, 2, 5), stays ? 0 : 65);
    ASSERT_EQ(::pwrite(fd, &byte, 1, at), 1);
    ::close(fd);
  });
}

// A page that is mapped and was written to before changes without a new time.
TEST(ChangedStorage, InAMappedPageIsFound) {
  const TemporaryFolder folder;
  const std::string path = write_raw_part(folder, "part");
  const std::uint64_t at = byte_of_a_sample(path);
  const int fd = ::open(path.c_str(), O_RDWR);
  const std::size_t bytes = std::filesystem::file_size(path);
  void* const map = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ASSERT_NE(map, MAP_FAILED);
  volatile std::uint8_t* const byte = static_cast<std::uint8_t*>(map) + at;
  for_all_options([&](const ImageLoaderOptions& options, bool stays) {
    *byte = *byte;
    ImageLoader loader(path, options);
    EXPECT_EQ(epochs_end(loader, 0, 2), 0);
    *byte = *byte ^ 4;
    EXPECT_EQ(epochs_end(loader, 2, 5), stays ? 0 : 65);
    *byte = *byte ^ 4;
  });
  ::munmap(map, bytes);
  ::close(fd);
}

// Bytes that were changed when they were read and mended when the file was looked at.
TEST(ChangedStorage, ThatIsMendedMeanwhileGivesAnErrorOrWhatWasPacked) {
  const TemporaryFolder folder;
  const std::string path = write_part(folder, "hdf5", "none", 403);  // a window is not all of it
  for (const std::uint32_t period : {2, 3, 5})
    for_all_options([&](ImageLoaderOptions options, bool) {
      options.threads = 8;
      int errors = 0;
      const ChangedReads changed(byte_of_a_sample(path), period);
      ImageLoader loader(path, options);
      for (std::uint64_t epoch = 0; epoch < 12; ++epoch) {
        const int found = epochs_end(loader, epoch, epoch + 1);
        EXPECT_TRUE(found == 0 || found == 65) << found;
        errors += found == 65;
      }
      // Chunks of a window are read again when they are used: they are whole then.
      EXPECT_TRUE(errors > 0 || options.cache != Cache::none || options.shuffle == Shuffle::window);
    });
}

TEST(ChangedStorage, IsFoundByADataset) {
  const TemporaryFolder folder;
  const std::string path = write_raw_part(folder, "part");
  for (const Cache cache : kCaches) {
    ImageDataset dataset(path, {.cache = cache});
    std::vector<std::uint8_t> pixels(kShape.byte_count());
    const std::vector<std::uint64_t> wanted{29};
    const ChangedReads changed(byte_of_a_sample(path));
    EXPECT_THROW(dataset.read(wanted, pixels), Error);
  }
}

TEST(ChangedStorage, OfOldAndNewPartsTogetherIsFound) {
  const TemporaryFolder folder;
  const std::vector<std::string> parts{write_raw_part(folder, "old", true), write_raw_part(folder, "part")};
  for_all_options([&](const ImageLoaderOptions& options, bool) {
    ImageLoader whole(parts, options);
    EXPECT_EQ(samples_of(read_epoch(whole, 0)).size(), 2 * kSamples);
    for (const std::string& part : parts) {
      const ChangedReads changed(byte_of_a_sample(part));
      ImageLoader loader(parts, options);
      EXPECT_THROW(read_epoch(loader, 0), Error);
    }
  });
}

// Their chunks are read and hashed as a whole, for which this is too little memory.
TEST(ChangedStorage, OfAnOldPackInLittleMemoryIsReadWithANotice) {
  const TemporaryFolder folder;
  const std::string path = write_raw_part(folder, "old", true);
  for (const Shuffle shuffle : kShuffles) {
    ImageLoader loader(path, {.batch_size = 10,
                              .shuffle = shuffle,
                              .window_chunks = 4,
                              .cache = Cache::none,
                              .cache_bytes = 300,
                              .threads = 2});
    EXPECT_EQ(epochs_end(loader, 0, 1), 0);
    const auto& notices = loader.stats().notices;
    EXPECT_TRUE(std::ranges::any_of(notices, [](const std::string& notice) {
      return notice.find("read without a comparison") != std::string::npos;
    }));
  }
  ImageLoader fresh(write_raw_part(folder, "part"),
                    {.batch_size = 10, .shuffle = Shuffle::global, .cache = Cache::none, .cache_bytes = 300});
  EXPECT_EQ(epochs_end(fresh, 0, 1), 0);
  EXPECT_TRUE(fresh.stats().notices.empty());
}

TEST(ChunksOfAWindowThatIsAllOfAPack, AreReadOnce) {
  const TemporaryFolder folder;
  for (const auto& [kind, filter] : kKinds) {
    ImageLoader loader(write_part(folder, kind, filter), {.batch_size = 10,
                                                          .shuffle = Shuffle::window,
                                                          .window_chunks = 13,
                                                          .cache = Cache::none,
                                                          .threads = 2});
    EXPECT_EQ(epochs_end(loader, 0, 4), 0);
    EXPECT_EQ(loader.stats().chunk_fetches, (kSamples - 1) / kKnownChunkSamples + 1) << kind << " " << filter;
  }
}

}  // namespace
}  // namespace chunkhit
