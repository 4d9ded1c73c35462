// Files that change under a running loader: it gives an Error or what was packed, and the process lives.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "chunkhit/image_loader.h"
#include "loaded_batches.h"

namespace chunkhit {
namespace {

constexpr Shuffle kShuffles[] = {Shuffle::none, Shuffle::window, Shuffle::global};
constexpr Cache kResidencies[] = {Cache::decoded, Cache::compressed, Cache::none};
constexpr OnCorrupt kOnCorrupt[] = {OnCorrupt::fail, OnCorrupt::skip};
// cache_bytes: enough, and too little to hold a window's chunks, where samples are read one by one.
constexpr std::uint64_t kMemories[] = {64 << 20, 1000};

void flip_in_chunk(const std::string& path, std::uint64_t offset) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(offset));
  const char byte = static_cast<char>(file.get() ^ 4);
  file.seekp(static_cast<std::streamoff>(offset));
  file.put(byte);
}

/// Calls `look` with options of every order and cache, and whether samples stay in memory: decoded chunks
/// of order global do, too, where there is room for them.
void for_all_options(const std::string& kind, const std::string& filter,
                     const std::function<void(const ImageLoaderOptions&, bool stays)>& look) {
  for (const Shuffle shuffle : kShuffles)
    for (const Cache cache : kResidencies)
      for (const OnCorrupt on_corrupt : kOnCorrupt)
        for (const std::uint64_t memory : kMemories) {
          const bool is_raw = kind == "hdf5" && filter == "none";
          if (memory != kMemories[0] && !(is_raw && cache == Cache::none)) continue;
          look({.batch_size = 10,
                .shuffle = shuffle,
                .window_chunks = 4,
                .cache = cache,
                .cache_bytes = memory,
                .threads = 2,
                .on_corrupt = on_corrupt},
               cache != Cache::none || (shuffle == Shuffle::global && !is_raw));
        }
}

// Mapped files ended the process with SIGBUS.
TEST(ChangedFile, ATruncationUnderARunningLoaderIsBadData) {
  const TemporaryFolder folder;
  const std::string path = folder.path("part");
  for (const auto& [kind, filter] : kKinds) {
    const std::string whole = write_part(folder, kind, filter);
    for_all_options(kind, filter, [&, kind = kind, filter = filter](const auto& options, bool stays) {
      for (const bool has_read : {false, true}) {
        std::filesystem::copy_file(whole, path);
        // Before the loader has threads: HDF5 is opened by a fork.
        const std::uint64_t end = open_part(path)->chunks()[3].offset + 1;
        ImageLoader loader(path, options);
        if (has_read) {
          EXPECT_EQ(epochs_end(loader, 0, 1), 0);
        }
        std::filesystem::resize_file(path, end);
        const int found = epochs_end(loader, 1, 4);
        const bool is_in_memory = stays && has_read;
        const bool skips = options.on_corrupt == OnCorrupt::skip;
        EXPECT_EQ(found, is_in_memory || skips ? 0 : 65) << kind << " " << filter << " " << has_read;
        if (skips && !is_in_memory) {
          EXPECT_GT(loader.stats().corrupt_samples, 0u) << kind << " " << filter << " " << has_read;
        }
        std::filesystem::remove(path);
      }
    });
  }
}

// Chunks were hashed once, and read again in every epoch.
TEST(ChangedFile, BytesThatAreOverwrittenAfterTheFirstEpochAreNotServed) {
  const TemporaryFolder folder;
  const std::string path = folder.path("part");
  for (const auto& [kind, filter] : kKinds) {
    const std::string whole = write_part(folder, kind, filter);
    for_all_options(kind, filter, [&, kind = kind, filter = filter](const auto& options, bool stays) {
      std::filesystem::copy_file(whole, path);
      const std::uint64_t offset = open_part(path)->chunks()[7].offset + 9;
      ImageLoader loader(path, options);
      EXPECT_EQ(epochs_end(loader, 0, 1), 0);
      flip_in_chunk(path, offset);
      // Of the second epoch some chunks were read ahead.
      EXPECT_EQ(epochs_end(loader, 1, 4), stays || options.on_corrupt == OnCorrupt::skip ? 0 : 65);
      EXPECT_EQ(loader.stats().corrupt_samples > 0, !stays && options.on_corrupt == OnCorrupt::skip);
      flip_in_chunk(path, offset);
      if (options.on_corrupt == OnCorrupt::fail) {
        EXPECT_EQ(epochs_end(loader, 4, 5), 0) << "it is whole again";
      }
      std::filesystem::remove(path);
    });
  }
}

/// Lowers the number of files that this process may have open, for as long as it lives.
class FewFiles {
 public:
  explicit FewFiles(rlim_t files) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit now{files, before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &now);
  }
  FewFiles(const FewFiles&) = delete;
  FewFiles& operator=(const FewFiles&) = delete;
  ~FewFiles() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

std::vector<std::string> copies_of(const std::string& part, int count) {
  std::vector<std::string> paths;
  for (int i = 0; i < count; ++i) {
    paths.push_back(part + "-" + std::to_string(i));
    std::filesystem::copy_file(part, paths.back());
  }
  return paths;
}

TEST(ChangedFile, MorePartsThanDescriptorsAreReadAsFew) {
  const TemporaryFolder folder;
  const FewFiles few(48);
  for (const auto& [kind, filter] : {std::pair{"hdf5", "none"}, std::pair{"shard", "photo"}}) {
    const std::vector<std::string> paths = copies_of(write_part(folder, kind, filter, 20), 100);
    for (const Shuffle shuffle : kShuffles) {
      ImageLoader loader(paths, {.batch_size = 64, .shuffle = shuffle, .cache = Cache::none, .threads = 3});
      std::vector<int> seen(loader.size());
      for (const Seen& batch : read_epoch(loader, 0))
        for (const std::uint64_t sample : batch.samples) ++seen[sample];
      EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), 2000);
    }
    for (const std::string& path : paths) std::filesystem::remove(path);
  }
}

TEST(ChangedFile, APartThatIsReplacedWhileItIsClosedIsBadData) {
  const TemporaryFolder folder;
  const FewFiles few(48);
  const std::string part = write_part(folder, "hdf5", "none", 20);
  const std::vector<std::string> paths = copies_of(part, 60);
  ImageLoader loader(paths, {.batch_size = 20, .cache = Cache::none, .threads = 1});
  std::filesystem::copy_file(part, folder.path("another"));
  std::filesystem::rename(folder.path("another"), paths[50]);
  try {
    read_epoch(loader, 0);
    ADD_FAILURE() << "it was not noticed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_data);
    EXPECT_NE(std::string(error.what()).find("another file"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace chunkhit
