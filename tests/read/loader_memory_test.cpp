// A loader keeps to cache_bytes: what it takes beside it is the ring of batches.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "chunkhit/image_loader.h"
#include "known_parts.h"
#include "temporary_folder.h"

namespace chunkhit {
namespace {

constexpr std::uint64_t kMemorySamples = 4000;
constexpr std::uint64_t kMemoryChunkSamples = 20;
constexpr std::uint64_t kFewSamples = 40;
constexpr std::uint64_t kBatchSize = 32;
constexpr std::uint64_t kRing = 5;  // batches: four ahead, and the caller's
const SampleShape kMemoryShape{64, 64, 3, Layout::nhwc};

std::string write_memory_part(const TemporaryFolder& folder, const std::string& name,
                              const std::string& filter, std::uint64_t samples) {
  const Container& kind = container(name);
  PartSpec spec = known_spec(kMemoryShape, filter);
  spec.chunk_samples = kMemoryChunkSamples;
  const std::string path = folder.path(filter + std::to_string(samples) + std::string(kind.extension));
  write_known_part(kind, path, spec, samples);
  return path;
}

/// Memory of this process that is no file's. Mapped pages of files count as resident too, but the system
/// takes them back when it needs them; so the peak that getrusage gives would count what nobody holds.
std::uint64_t anonymous_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word != "RssAnon:") continue;
    std::uint64_t kibibytes = 0;
    status >> kibibytes;
    return kibibytes << 10;
  }
  return 0;
}

/// The most memory while some epochs are read, with threads that get as far ahead as they can.
std::uint64_t peak_of(const std::string& path, const ImageLoaderOptions& options) {
  constexpr std::uint64_t kEpochs = 3;
  std::uint64_t peak = 0;
  ImageLoader loader(path, options);
  for (std::uint64_t epoch = 0; epoch < kEpochs; ++epoch)
    for (const ImageBatch& batch : loader.epoch(epoch)) {
      if (batch.index % 32 == 0) ::usleep(20'000);
      if (batch.index % 4 == 0) peak = std::max(peak, anonymous_bytes());
    }
  return peak;
}

/// In a process that has not read anything before.
std::uint64_t peak_in_child(const std::string& path, const ImageLoaderOptions& options) {
  int ends[2] = {};
  EXPECT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const std::uint64_t peak = peak_of(path, options);
    ::_exit(::write(ends[1], &peak, sizeof peak) == sizeof peak ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  std::uint64_t peak = 0;
  EXPECT_TRUE(status == 0 && ::read(ends[0], &peak, sizeof peak) == sizeof peak) << path;
  ::close(ends[0]);
  ::close(ends[1]);
  return peak;
}

struct MemoryCase {
  Shuffle shuffle;
  Cache cache;
  std::uint64_t cache_bytes;
};

std::uint64_t mebibytes(std::uint64_t count) { return count << 20; }

void expect_within(const std::string& name, const std::string& filter, const std::vector<MemoryCase>& cases) {
  const TemporaryFolder folder;
  const std::string path = write_memory_part(folder, name, filter, kMemorySamples);
  const std::string small = write_memory_part(folder, name, filter, kFewSamples);
  for (const MemoryCase& each : cases) {
    const ImageLoaderOptions options{.batch_size = kBatchSize,
                                     .shuffle = each.shuffle,
                                     .window_chunks = 8,
                                     .cache = each.cache,
                                     .cache_bytes = each.cache_bytes,
                                     .threads = 2};
    const std::uint64_t base =
        peak_in_child(small, {.batch_size = 1, .cache = Cache::none, .threads = 1, .prefetch = 1});
    const std::uint64_t ring = kRing * kBatchSize * kMemoryShape.byte_count();
    const std::uint64_t taken = peak_in_child(path, options) - base;
    EXPECT_LE(taken, each.cache_bytes + each.cache_bytes / 10 + ring)
        << name << " " << filter << " order " << static_cast<int>(each.shuffle) << " cache "
        << static_cast<int>(each.cache) << ": " << (taken >> 10) << " KiB of " << (each.cache_bytes >> 10)
        << " + " << (ring >> 10);
  }
}

TEST(LoaderMemory, OfPhotoShardsStaysWithinWhatIsGiven) {
  expect_within("shard", "photo",
                {{Shuffle::window, Cache::decoded, mebibytes(50)},
                 {Shuffle::window, Cache::compressed, mebibytes(32)},
                 {Shuffle::global, Cache::compressed, mebibytes(32)},
                 {Shuffle::none, Cache::none, mebibytes(8)},
                 {Shuffle::window, Cache::none, mebibytes(8)},
                 {Shuffle::global, Cache::none, mebibytes(8)},
                 {Shuffle::global, Cache::none, mebibytes(4)}});
}

TEST(LoaderMemory, OfDeflatedHdf5StaysWithinWhatIsGiven) {
  expect_within("hdf5", "deflate",
                {{Shuffle::global, Cache::decoded, mebibytes(50)},
                 {Shuffle::window, Cache::compressed, mebibytes(40)},
                 {Shuffle::global, Cache::none, mebibytes(8)}});
}

TEST(LoaderMemory, OfARawFileIsTheRingOnly) {
  expect_within("hdf5", "none",
                {{Shuffle::window, Cache::none, mebibytes(1)},
                 {Shuffle::global, Cache::none, mebibytes(1)},
                 {Shuffle::window, Cache::decoded, mebibytes(48)}});
}

}  // namespace
}  // namespace chunkhit
