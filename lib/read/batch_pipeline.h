// Makes batches on threads, in their order, ahead of who uses them.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "augment/sample_writer.h"
#include "batch/epoch_batches.h"
#include "batch/epoch_order.h"
#include "cache/chunk_cache.h"
#include "read/batch_buffer.h"
#include "read/batch_maker.h"
#include "read/image_source.h"

namespace chunkhit {

/// Where an epoch is begun.
struct EpochStart {
  std::uint64_t epoch = 0;
  std::uint64_t first_place = 0;  ///< all before were used by all ranks
  std::uint64_t first_batch = 0;  ///< of those that begin at first_place
};

struct PipelineSpec {
  OrderSpec order;
  BatchSpec batches;
  std::uint32_t threads = 1;
  std::uint32_t prefetch = 4;
  bool loads_ahead = true;        ///< chunks are asked for before a batch needs them; not in a global order
  std::size_t chunks_ahead = 64;  ///< how many chunks may be wanted at a time, if a batch does not need more
};

/// What the threads and the caller did; seconds.
struct PipelineStats {
  double wait_seconds = 0;
  double step_seconds = 0;
  double idle_seconds = 0;
  std::uint64_t batches = 0;
  std::uint64_t samples = 0;
  std::uint64_t batch_bytes = 0;
  std::uint64_t corrupt_samples = 0;  ///< left out of the batches that the caller had
  BatchCounts made;                   ///< of all batches
  void add(const PipelineStats& other);
};

/// Work is given out in one order: the chunks that a batch needs, then the batch; so whatever is waited for
/// is already being done. Goes on with the next epoch by itself.
class BatchPipeline {
 public:
  BatchPipeline(const ImageSource& source, const ChunkGrid& grid, ChunkCache& cache,
                const SampleWriter& writer, const BatchAllocator& allocator, const PipelineSpec& spec,
                const EpochStart& start);
  BatchPipeline(const BatchPipeline&) = delete;
  BatchPipeline& operator=(const BatchPipeline&) = delete;
  ~BatchPipeline();

  /// The next batch of the current epoch, or null at its end, after which the next epoch is the current one.
  /// A fault of any thread is thrown here, in its place, and again when asked again.
  [[nodiscard]] const ImageBatch* next();
  /// Where the caller stands: the current epoch's batches, and how many of them it has had.
  [[nodiscard]] std::uint64_t epoch() const { return start_.epoch; }
  [[nodiscard]] const EpochBatches& batches() const { return batches_; }
  [[nodiscard]] std::uint64_t next_batch() const { return next_batch_; }
  [[nodiscard]] const EpochStart& start() const { return start_; }
  [[nodiscard]] PipelineStats stats() const;
  void reset_stats();

 private:
  /// An epoch that is being made; its chunks are visited in slots.
  struct Plan {
    Plan(const ChunkGrid& grid, const PipelineSpec& spec, const EpochStart& start);
    [[nodiscard]] EpochOrder::Slots slots_of(std::uint64_t batch) const;
    [[nodiscard]] bool has_batches() const { return next_batch < batches.batch_count(); }
    std::uint64_t epoch;
    std::uint64_t sample_count;
    EpochOrder order;
    EpochBatches batches;
    std::uint64_t next_batch;  // to be given out
    std::uint64_t next_slot;   // to be loaded
    std::uint64_t first_slot;  // still wanted
    std::uint64_t end_slot;    // of all batches
  };
  struct Work {
    Plan* plan = nullptr;
    std::uint64_t batch = 0;
    std::uint64_t number = 0;  // of the batch, over all epochs
    std::uint64_t chunk = 0;   // or this chunk is to be loaded
    bool loads = false;
    bool done = false;
  };
  void run(const std::stop_token& stop);
  [[nodiscard]] bool take_work(Work& work);
  [[nodiscard]] bool take_load(Work& work);
  void load(const Work& work, BatchMaker& maker);
  void make(const Work& work, BatchMaker& maker);
  void finish(const Work& work, const BatchCounts& counts);
  void let_go(Plan& plan, std::uint64_t end_slot);
  [[nodiscard]] BatchBuffer& buffer(std::uint64_t number) { return ring_[number % ring_.size()]; }

  const ImageSource& source_;
  const ChunkGrid& grid_;
  ChunkCache& cache_;
  const SampleWriter& writer_;
  const PipelineSpec spec_;
  std::vector<BatchBuffer> ring_;

  mutable std::mutex mutex_;  // guards all below, up to the caller's own
  std::condition_variable_any work_changed_;
  std::condition_variable batch_ready_;
  std::deque<std::unique_ptr<Plan>> plans_;  // in order; each has batches that are not made yet
  std::deque<Work> given_out_;               // batches, up from the oldest that is not made yet
  std::uint64_t next_number_ = 0;            // of the next batch to be given out
  std::uint64_t wanted_chunks_ = 0;
  PipelineStats stats_;

  // The caller's own; what its `next` shares with the threads is `used_up_`, under the lock.
  std::uint64_t used_up_ = 0;  // batches that the caller gave back
  EpochStart start_;
  EpochBatches batches_;
  std::uint64_t next_batch_;
  bool holds_batch_ = false;
  std::chrono::steady_clock::time_point handed_out_;
  std::vector<std::jthread> threads_;
};

}  // namespace chunkhit
