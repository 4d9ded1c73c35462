#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/random.h"
#include "batch/epoch_batches.h"
#include "batch/epoch_order.h"
#include "chunkhit/image_loader.h"
#include "loaded_batches.h"
#include "read/image_batch_assembler.h"

namespace chunkhit {
namespace {

/// Ten seconds of two threads; the caller waited for `wait_seconds`.
LoaderStats ten_seconds(double wait_seconds) {
  LoaderStats stats;
  stats.seconds = 10;
  stats.wait_seconds = wait_seconds;
  stats.step_seconds = 10 - wait_seconds;
  stats.batches = 100;
  stats.threads = 2;
  return stats;
}

bool says(const LoaderStats& stats, const std::string& words) {
  return stats.verdict().find(words) != std::string::npos;
}

TEST(StatisticsSince, AreThoseOfTheTimeBetween) {
  LoaderStats before = ten_seconds(1);
  before.transform_seconds = before.transform_wait_seconds = 1;
  LoaderStats now = ten_seconds(3);
  now.transform_seconds = 1.5;
  now.transform_wait_seconds = 2;
  now.seconds = 14;
  now.batches = 150;
  const LoaderStats since = now.since(before);
  EXPECT_EQ(since.batches, 50u);
  EXPECT_DOUBLE_EQ(since.wait_fraction(), 0.5);
  EXPECT_TRUE(since.verdict().starts_with("highly input-bound"));
  EXPECT_EQ(since.threads, 2u);
  EXPECT_DOUBLE_EQ(since.transform_seconds, 0.5);
  EXPECT_DOUBLE_EQ(since.transform_wait_seconds, 1);
}

TEST(StatisticsSince, AreAllThatAResetLeft) {
  LoaderStats now = ten_seconds(1);
  now.seconds = 2;
  now.batches = 7;
  const LoaderStats since = now.since(ten_seconds(1));
  EXPECT_EQ(since.batches, 7u);
  EXPECT_DOUBLE_EQ(since.seconds, 2);
}

TEST(Verdict, HasTheThresholdsOfTfData) {
  EXPECT_TRUE(ten_seconds(0.49).verdict().starts_with("not input-bound"));
  EXPECT_TRUE(ten_seconds(0.5).verdict().starts_with("input-bound"));
  EXPECT_TRUE(ten_seconds(1.99).verdict().starts_with("input-bound"));
  EXPECT_TRUE(ten_seconds(2).verdict().starts_with("highly input-bound"));
}

TEST(Verdict, IsNoneBeforeASecond) {
  LoaderStats stats = ten_seconds(5);
  stats.seconds = 0.9;
  stats.wait_seconds = 0.3;
  EXPECT_EQ(stats.verdict(),
            "no verdict before a second of data: in 0.900 s training waited 33.3 % of the time for data");
  stats.corrupt_samples = 1234;
  EXPECT_TRUE(says(stats, "1,234 samples of damaged chunks were left out")) << stats.verdict();
}

TEST(Verdict, SaysThatAllSamplesAreDamaged) {
  LoaderStats stats = ten_seconds(0);
  stats.batches = 0;
  EXPECT_EQ(stats.verdict(), "no batch was asked for yet");
  stats.corrupt_samples = 1234;
  EXPECT_EQ(stats.verdict(), "no batch: all 1,234 samples were left out as damaged");
}

TEST(Verdict, BlamesTheStageThatTookLongest) {
  LoaderStats stats = ten_seconds(5);
  stats.fetch_seconds = stats.decode_seconds = stats.assemble_seconds = 5;
  stats.fetch_seconds = 8;
  EXPECT_TRUE(says(stats, "reading stored bytes takes longest")) << stats.verdict();
  stats.decode_seconds = 9;
  EXPECT_TRUE(says(stats, "decompressing takes longest")) << stats.verdict();
  stats.assemble_seconds = 10;
  EXPECT_TRUE(says(stats, "copying and converting takes longest")) << stats.verdict();
}

TEST(Verdict, BlamesNoStageWhereBatchesWereReadyOrThreadsWaited) {
  LoaderStats stats = ten_seconds(3);
  stats.decode_seconds = 4;
  stats.idle_seconds = 15;
  EXPECT_TRUE(says(stats,
                   "training waited 30.0 % of the time for data; the threads keep up on average (busy for "
                   "4.000 s and idle for 15.000 s of their 20.000 s), so that only some batches came late"))
      << stats.verdict();
  EXPECT_TRUE(says(stats, "raise prefetch")) << stats.verdict();
  stats.idle_seconds = 2;
  EXPECT_TRUE(says(stats, "waited for one another")) << stats.verdict();
  EXPECT_FALSE(says(stats, "idle")) << stats.verdict();
}

TEST(Verdict, BlamesATransformThatTakesLongerThanItWaitsForTheLoader) {
  LoaderStats stats = ten_seconds(6);
  stats.decode_seconds = 15;
  stats.transform_seconds = 4;
  stats.transform_wait_seconds = 2;
  EXPECT_TRUE(says(
      stats,
      "highly input-bound: training waited 60.0 % of the time for data; the transform takes "
      "longest (4.000 s, 40.000 ms a batch; 2.000 s of waiting for the loader): if it loops over images"))
      << stats.verdict();
  EXPECT_TRUE(says(stats, "transform_ahead=2")) << stats.verdict();
  stats.transform_ahead = 2;
  EXPECT_FALSE(says(stats, "transform_ahead=2")) << stats.verdict();
  EXPECT_TRUE(says(stats, "leave its thread a CPU")) << stats.verdict();
  stats.transform_wait_seconds = 5;
  EXPECT_TRUE(says(stats, "decompressing takes longest")) << stats.verdict();
  EXPECT_FALSE(says(stats, "the transform")) << stats.verdict();
}

TEST(Verdict, BlamesNoTransformThatTrainingDoesNotWaitFor) {
  LoaderStats stats = ten_seconds(0.3);
  stats.transform_seconds = 9;
  stats.transform_ahead = 2;
  EXPECT_EQ(stats.verdict(), "not input-bound: training waited 3.0 % of the time for data");
  std::ostringstream text;
  text << stats;
  EXPECT_NE(text.str().find("\ntransform: busy 9.000 s, waited for the loader 0.000 s; 2 ahead\n"),
            std::string::npos)
      << text.str();
}

/// Writes a raw part of noise; gives its path.
std::string write_large_part(const TemporaryFolder& folder, std::uint64_t samples) {
  const SampleShape shape{64, 64, 3, Layout::nhwc};
  const Container& kind = container("hdf5");
  PartSpec spec = known_spec(shape, "none");
  spec.chunk_samples = 100;
  const std::string path = folder.path("part.h5");
  const std::unique_ptr<ChunkWriter> writer = kind.create(path, spec);
  const ByteBuffer chunk = [&] {
    ByteBuffer bytes(100 * shape.byte_count());
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(mix_bits(i));
    return bytes;
  }();
  for (std::uint64_t first = 0; first < samples; first += 100)
    writer->append({chunk, chunk.size(), 100, xxh3(chunk), false});
  writer->finish(known_part_samples(spec, samples));
  return path;
}

/// Asks the system to forget a file's pages; whether it did, as far as the first and the last tell.
bool forget(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY);
  const std::size_t bytes = std::filesystem::file_size(path), pages = (bytes + 4095) / 4096;
  ::fdatasync(fd);
  ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  void* const map = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, 0);
  std::vector<unsigned char> is_ready(pages);
  const bool told = ::mincore(map, bytes, is_ready.data()) == 0;
  ::munmap(map, bytes);
  ::close(fd);
  return told && is_ready[pages / 2] % 2 == 0 && is_ready[pages - 2] % 2 == 0;
}

/// The seconds that copying all samples of a raw file waits for pages, in an order that no thread reads
/// ahead.
class PageWaits {
 public:
  explicit PageWaits(const std::string& path) : source_({path}, {}) {}
  double of_epoch(std::uint64_t epoch) {
    const EpochOrder order(grid_, {Shuffle::global, 1, 1}, epoch);
    const EpochBatches batches(source_.size(), {.batch_size = kBatch}, 1, epoch);
    double seconds = 0;
    for (std::uint64_t index = 0; index < batches.batch_count(); ++index) {
      assembler_.make({epoch, order, batches, index, 0, batches.batch(index).size}, 0);
      seconds += assembler_.counts().page_seconds;
    }
    return seconds;
  }

 private:
  static constexpr std::uint64_t kBatch = 1000;
  ImageSource source_;
  ChunkGrid grid_{source_.chunks().sample_counts()};
  std::unique_ptr<ChunkCache> cache_ =
      make_chunk_cache(source_.chunks(), {.check_hashes = CheckHashes::never, .reads_samples = true});
  std::unique_ptr<ImageCopier> copier_ =
      image_copier(source_.chunks(), {source_.chunks().sample(), {}, Dtype::uint8, Layout::nhwc, {}});
  BatchRing<BatchBuffer> ring_{1, 1, [this] {
                                 return BatchBuffer{BatchMemory({}, kBatch * copier_->sample_bytes()),
                                                    std::vector<std::int64_t>(kBatch),
                                                    {},
                                                    std::vector<std::uint64_t>(kBatch),
                                                    std::vector<std::uint64_t>(kBatch),
                                                    std::vector<std::uint8_t>(kBatch),
                                                    {}};
                               }};
  ImageBatchAssembler assembler_{
      {source_, grid_, *cache_, *copier_, ring_, 1, 1, {.slice_samples = kBatch, .holds_all = false}}};
};

TEST(BatchAssembler, CountsWaitingForPagesOfAMappedFileApartFromCopying) {
  const TemporaryFolder folder;
  const std::string path = write_large_part(folder, 4000);
  if (!forget(path)) GTEST_SKIP() << "this file system keeps its pages in memory";
  PageWaits waits(path);
  EXPECT_GT(waits.of_epoch(0), 0);
  // Another process may take a page or the CPU from one epoch, not from three.
  EXPECT_EQ(std::min({waits.of_epoch(1), waits.of_epoch(2), waits.of_epoch(3)}), 0);
}

TEST(Verdict, TellsWhatWasLeftOut) {
  LoaderStats stats = ten_seconds(0.1);
  stats.corrupt_samples = 91;
  EXPECT_TRUE(says(stats, "91 samples of damaged chunks were left out")) << stats.verdict();
}

TEST(Verdict, EndsWithWhatWasTriedWhereThreadsAreAutomatic) {
  LoaderStats stats = ten_seconds(5);
  stats.assemble_seconds = 20;
  stats.tuning = {"batch 9: threads 2 to 4", "batch 12: settled on threads 2, prefetch 4 after 1 trial"};
  EXPECT_TRUE(stats.verdict().ends_with("; tuning: " + stats.tuning.back())) << stats.verdict();
  EXPECT_FALSE(says(stats, "give more threads")) << stats.verdict();
  std::ostringstream text;
  text << stats;
  EXPECT_NE(text.str().find("tuning: batch 9: threads 2 to 4\n"), std::string::npos) << text.str();
}

}  // namespace
}  // namespace chunkhit
