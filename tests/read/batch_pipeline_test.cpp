// A pipeline whose threads and slots change while it runs.
#include "read/batch_pipeline.h"

#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "loaded_batches.h"
#include "read/image_source.h"

namespace chunkhit {
namespace {

constexpr std::uint64_t kBatch = 5;
constexpr std::uint64_t kBatches = (kSamples + kBatch - 1) / kBatch;

/// A batch of sample numbers.
struct NumberBuffer {
  std::vector<std::uint64_t> batch;
};

/// The threads that made slices since it was asked last.
class Workers {
 public:
  void note() {
    const std::lock_guard lock(mutex_);
    ids_.insert(std::this_thread::get_id());
  }
  std::set<std::thread::id> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(ids_, {});
  }

 private:
  std::mutex mutex_;
  std::set<std::thread::id> ids_;
};

/// Copies the numbers of a batch's samples.
class NumberAssembler final : public BatchAssembler {
 public:
  NumberAssembler(const ChunkSet& chunks, const ChunkGrid& grid, ChunkCache& cache,
                  const BatchRing<NumberBuffer>& ring, Workers& workers)
      : ring_(ring),
        workers_(workers),
        samples_(chunks, grid, cache, {.slice_samples = 2, .batch_size = kBatch, .by_chunk = true}) {}
  void make(const BatchTask& task, std::size_t slot) override {
    workers_.note();
    samples_.find(task, task.batches.batch(task.index));
    for (std::size_t begin = 0; begin < samples_.all().size();)
      begin = samples_.hold(begin, counts_, stored_);
    for (const BatchSamples::Sample& each : samples_.all())
      ring_[slot].batch[each.at] = samples_.number(each);
    samples_.release();
  }
  [[nodiscard]] MadeBatch complete(const BatchTask& task, std::size_t) override {
    return {task.batches.batch(task.index).size, 0, 0};
  }

 private:
  const BatchRing<NumberBuffer>& ring_;
  Workers& workers_;
  BatchSamples samples_;
};

/// A pipeline over a part, in slices of two samples.
class Numbers {
 public:
  Numbers(const std::string& part, Shuffle shuffle, const PipelineSize& size, std::size_t max_slots = 40)
      : source_(std::vector{part}, {}),
        grid_(source_.chunks().sample_counts()),
        cache_(make_chunk_cache(source_.chunks(), {.kept_chunks = 8, .chunks_ahead = 64})),
        ring_(size.slots, max_slots,
              [this] {
                if (no_more_buffers_) throw std::bad_alloc();
                return NumberBuffer{std::vector<std::uint64_t>(kBatch)};
              }),
        make_maker_([this] {
          return std::make_unique<NumberAssembler>(source_.chunks(), grid_, *cache_, ring_, workers_);
        }),
        order_(grid_, {.shuffle = shuffle, .seed = 3, .window_chunks = 4}, {}),
        pipeline_(order_, *cache_, ring_, make_maker_,
                  {.batches = {.batch_size = kBatch},
                   .max_threads = 8,
                   .loads_ahead = shuffle != Shuffle::global,
                   .slice_samples = 2},
                  size, {}) {}

  /// The next batch's samples; none at the end of an epoch.
  std::vector<std::uint64_t> next() {
    const std::optional<std::size_t> slot = pipeline_.next();
    if (!slot) return {};
    const std::vector<std::uint64_t>& batch = ring_[*slot].batch;
    return {batch.begin(), batch.begin() + static_cast<std::ptrdiff_t>(pipeline_.handed_samples())};
  }
  void resize(std::uint32_t threads, std::size_t slots) {
    pipeline_.resize({.threads = threads, .slots = slots, .chunks_ahead = 12 + threads});
  }
  [[nodiscard]] std::size_t slots() const { return ring_.size(); }
  Workers& workers() { return workers_; }
  void give_no_more_buffers() { no_more_buffers_ = true; }

 private:
  ImageSource source_;
  ChunkGrid grid_;
  std::unique_ptr<ChunkCache> cache_;
  bool no_more_buffers_ = false;
  BatchRing<NumberBuffer> ring_;
  Workers workers_;
  MakeBatchAssembler make_maker_;
  LoaderOrder order_;
  BatchPipeline pipeline_;
};

TEST(BatchPipeline, GivesTheSameBatchesWhileItsSizeChanges) {
  const TemporaryFolder folder;
  const std::string part = write_part(folder, "shard", "zstd");
  for (const Shuffle shuffle : {Shuffle::none, Shuffle::window, Shuffle::global}) {
    Numbers fixed(part, shuffle, {.threads = 2, .slots = 5});
    Numbers changed(part, shuffle, {.threads = 2, .slots = 5});
    std::mt19937 random(7);
    for (std::uint64_t batch = 0; batch < 40 * (kBatches + 1); ++batch) {
      if (random() % 3 == 0) changed.resize(1 + random() % 8, 2 + random() % 39);
      ASSERT_EQ(changed.next(), fixed.next()) << "batch " << batch;
    }
  }
}

TEST(BatchPipeline, LeavesAllWorkToTheThreadsThatAreInUse) {
  const TemporaryFolder folder;
  const std::string part = write_part(folder, "shard", "zstd");
  for (const Shuffle shuffle : {Shuffle::window, Shuffle::global}) {
    Numbers numbers(part, shuffle, {.threads = 6, .slots = 9});
    for (int batch = 0; batch < 200; ++batch) static_cast<void>(numbers.next());
    for (const std::uint32_t threads : {1U, 3U}) {
      numbers.resize(threads, 9);
      // Batches that were begun before, and those that wait in the ring.
      for (int batch = 0; batch < 20; ++batch) static_cast<void>(numbers.next());
      static_cast<void>(numbers.workers().take());
      for (int batch = 0; batch < 500; ++batch) static_cast<void>(numbers.next());
      EXPECT_GE(numbers.workers().take().size(), 1u);
      for (int batch = 0; batch < 500; ++batch) static_cast<void>(numbers.next());
      EXPECT_LE(numbers.workers().take().size(), threads);
    }
  }
}

TEST(BatchPipeline, MakesSlotsOnceTheyAreUsed) {
  const TemporaryFolder folder;
  const std::string part = write_part(folder, "hdf5", "none");
  Numbers numbers(part, Shuffle::none, {.threads = 1, .slots = 3});
  EXPECT_EQ(numbers.slots(), 3u);
  numbers.resize(1, 7);
  EXPECT_EQ(numbers.slots(), 7u);
  numbers.resize(1, 2);
  EXPECT_EQ(numbers.slots(), 7u);  // memory that is allocated once is kept, as pinned memory is expensive
  std::vector<std::uint64_t> samples;
  for (std::uint64_t batch = 0; batch < kBatches; ++batch)
    for (const std::uint64_t sample : numbers.next()) samples.push_back(sample);
  EXPECT_EQ(samples, all_samples());
}

TEST(BatchPipeline, StaysAsItIsWhereThereIsNoMemoryForMoreSlots) {
  const TemporaryFolder folder;
  const std::string part = write_part(folder, "hdf5", "none");
  Numbers numbers(part, Shuffle::window, {.threads = 2, .slots = 5});
  Numbers fixed(part, Shuffle::window, {.threads = 2, .slots = 5});
  numbers.give_no_more_buffers();
  for (std::uint64_t batch = 0; batch < 4 * (kBatches + 1); ++batch) {
    EXPECT_THROW(numbers.resize(8, 12), std::bad_alloc);
    ASSERT_EQ(numbers.next(), fixed.next());
  }
  EXPECT_EQ(numbers.slots(), 5u);
}

TEST(BatchPipeline, EndsWhileThreadsAreParked) {
  const TemporaryFolder folder;
  const std::string part = write_part(folder, "shard", "zstd");
  for (std::uint32_t turn = 0; turn < 100; ++turn) {
    Numbers numbers(part, Shuffle::window, {.threads = 1 + turn % 8, .slots = 9});
    for (std::uint32_t batch = 0; batch < turn % 7; ++batch) static_cast<void>(numbers.next());
    numbers.resize(1 + turn % 3, 4);
  }
}

}  // namespace
}  // namespace chunkhit
