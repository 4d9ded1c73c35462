// Which chunks the threads read while one chunk is slow. `pread` of this program is the one below.
#include <gtest/gtest.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/resources.h"
#include "changed_reads.h"
#include "chunkhit/image_loader.h"
#include "loaded_batches.h"

namespace chunkhit {
namespace {

std::atomic<std::chrono::milliseconds> read_delay{};

/// Holds reads of chunk 0 back until `others` chunks behind it were read, or for a minute.
class SlowChunk {
 public:
  SlowChunk(const std::string& part, std::size_t others)
      : chunks_(open_part(part)->chunks()), others_(others) {
    const std::lock_guard lock(mutex);
    current = this;
  }
  SlowChunk(const SlowChunk&) = delete;
  SlowChunk& operator=(const SlowChunk&) = delete;
  ~SlowChunk() {
    const std::lock_guard lock(mutex);
    current = nullptr;
  }
  [[nodiscard]] bool saw_others() const {
    const std::lock_guard lock(mutex);
    return !read_.empty() && !timed_out_;
  }
  static void before_read(std::uint64_t offset) {
    std::unique_lock lock(mutex);
    if (current != nullptr) current->wait_or_note(offset, lock);
  }

 private:
  void wait_or_note(std::uint64_t offset, std::unique_lock<std::mutex>& lock) {
    if (offset < chunks_[0].offset) return;
    if (offset < chunks_[0].offset + chunks_[0].stored_bytes) {
      const auto is_done = [&] { return read_.size() >= others_; };
      if (!changed.wait_for(lock, std::chrono::minutes(1), is_done)) timed_out_ = true;
      return;
    }
    read_.insert(offset);
    changed.notify_all();
  }

  static inline std::mutex mutex;
  static inline std::condition_variable changed;
  static inline SlowChunk* current = nullptr;
  std::vector<StoredChunk> chunks_;
  std::size_t others_;
  std::set<std::uint64_t> read_;
  bool timed_out_ = false;
};

/// Reads order none with two threads; whether `others` chunks were read while the first one was slow.
bool reads_others(const std::string& part, std::size_t others, ImageLoaderOptions options) {
  options.cache = Cache::none;
  options.threads = 2;
  ImageLoader loader(part, options);
  const SlowChunk slow(part, others);
  EXPECT_EQ(samples_of(read_epoch(loader, 0)), all_samples());
  return slow.saw_others();
}

TEST(ChunksAhead, AreLoadedWhileTheFirstOneOfABatchIsSlow) {
  const TemporaryFolder folder;
  for (const auto& [kind, filter] : kKinds)
    EXPECT_TRUE(reads_others(write_part(folder, kind, filter), 3, {.batch_size = 4}))
        << kind << " " << filter;
}

TEST(ChunksAhead, AreAsManyAsMemoryHolds) {
  const TemporaryFolder folder;
  const std::string part = write_part(folder, "hdf5", "none");
  const std::uint64_t chunk_bytes = kKnownChunkSamples * kShape.byte_count();
  EXPECT_TRUE(reads_others(part, 1, {.batch_size = 4, .cache_bytes = 3 * chunk_bytes}));
}

TEST(ChunksAhead, EndInTheMidstOfALoad) {
  const TemporaryFolder folder;
  const std::string part = write_part(folder, "shard", "zstd");
  for (int turn = 0; turn < 50; ++turn) {
    ImageLoader loader(part, {.batch_size = 4, .cache = Cache::none, .threads = 3});
    for (int batch = 0; batch < turn % 30; ++batch) static_cast<void>(loader.next());
    static_cast<void>(loader.epoch(static_cast<std::uint64_t>(turn)));
  }
}

TEST(ChunksAhead, AreReadByMoreThreadsThanCpusWhereReadsAreSlow) {
  const TemporaryFolder folder;
  const std::string part = write_part(folder, "shard", "zstd", 403);
  ImageLoader loader(part, {.batch_size = 4,
                            .shuffle = Shuffle::window,
                            .window_chunks = 4,
                            .cache = Cache::none,
                            .threads = kAutomatic});
  read_delay = std::chrono::milliseconds(10);
  const auto keeps_more = [&] {
    return std::ranges::any_of(loader.stats().tuning, [](const std::string& line) {
      return line.find(": threads ") != std::string::npos && line.ends_with(": kept");
    });
  };
  for (std::uint64_t epoch = 0; epoch < 200 && !keeps_more(); ++epoch)
    EXPECT_EQ(read_epoch(loader, epoch).size(), loader.batch_count());
  read_delay = std::chrono::milliseconds(0);
  EXPECT_TRUE(keeps_more()) << loader.stats();
  EXPECT_GT(loader.stats().threads, allowed_cpus()) << loader.stats();
}

}  // namespace
}  // namespace chunkhit

extern "C" ssize_t pread(int fd, void* out, std::size_t bytes, off_t offset) {
  std::this_thread::sleep_for(chunkhit::read_delay.load());
  chunkhit::SlowChunk::before_read(static_cast<std::uint64_t>(offset));
  const ssize_t got = ::syscall(SYS_pread64, fd, out, bytes, offset);
  chunkhit::change_read(static_cast<std::uint8_t*>(out), got, offset);
  return got;
}

extern "C" ssize_t preadv2(int fd, const iovec* to, int count, off_t offset, int flags) {
  if (chunkhit::tells_of_page_cache) return ::syscall(SYS_preadv2, fd, to, count, offset, 0L, flags);
  errno = EOPNOTSUPP;
  return -1;
}

extern "C" int fstatfs(int fd, struct statfs* status) {
  const auto result = static_cast<int>(::syscall(SYS_fstatfs, fd, status));
  if (!chunkhit::tells_of_page_cache) status->f_type = 0;  // nor is it in memory
  return result;
}
