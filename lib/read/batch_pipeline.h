// Prepares batches on worker threads, in order, ahead of the caller.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include "cache/chunk_cache.h"
#include "read/batch_ring.h"
#include "read/epoch_plan.h"

namespace chunkhit {

/// How much of a pipeline is in use, which may change while it runs.
struct PipelineSize {
  std::uint32_t threads = 1;      ///< that take work; others are parked
  std::size_t slots = 2;          ///< batches that are made, ready or held by the caller at a time
  std::size_t chunks_ahead = 64;  ///< how many chunks may be wanted at a time, if a batch does not need more
};

/// What the threads did, and what the caller had; seconds.
struct PipelineStats {
  double idle_seconds = 0;  ///< of threads that take work
  std::uint64_t batches = 0;
  std::uint64_t samples = 0;
  std::uint64_t batch_bytes = 0;
  std::uint64_t corrupt_samples = 0;  ///< left out of the batches that the caller had
  BatchCounts made;                   ///< of all batches
  void add(const PipelineStats& other);
};

/// How many slots a ring has: the one that the caller holds, those that are made ahead, and so many that
/// there is a slice for each thread.
[[nodiscard]] constexpr std::size_t ring_size(std::uint32_t threads, std::uint32_t prefetch,
                                              std::uint64_t batch_slices) {
  const std::uint64_t worked_on = (threads + batch_slices - 1) / batch_slices;
  return std::size_t{1} + (prefetch > worked_on ? prefetch : worked_on);
}

/// Makes the assembler of a thread.
using MakeBatchAssembler = std::function<std::unique_ptr<BatchAssembler>()>;

/// Fills the slots of a ring. Chunks are loaded in one order and batches are made in one order, in slices
/// that the threads share. A batch is given out once its chunks are loaded; until then threads load the
/// chunks of later ones. Where no more may be loaded, the batch is given out while its last chunks are
/// loading, so whatever is waited for is already being done. Continues with the next epoch by itself.
class BatchPipeline {
 public:
  /// Restarts the ring. `make_assembler` must outlive this.
  BatchPipeline(const LoaderOrder& order, ChunkCache& cache, BatchSlots& ring,
                const MakeBatchAssembler& make_assembler, const PipelineSpec& spec, const PipelineSize& size,
                const EpochStart& start);
  BatchPipeline(const BatchPipeline&) = delete;
  BatchPipeline& operator=(const BatchPipeline&) = delete;
  ~BatchPipeline();

  /// The slot of the current epoch's next batch, or nothing at its end, after which the next epoch is the
  /// current one. An error of any thread is thrown here, in its place, and again when asked again.
  [[nodiscard]] std::optional<std::size_t> next();
  /// Takes the slot back that `next` gave and waits up to `timeout` for the next batch; returns whether it is
  /// ready.
  [[nodiscard]] bool wait_for(std::chrono::milliseconds timeout);
  /// How many samples the slot has that `next` gave last; 0 where all of them were left out.
  [[nodiscard]] std::uint64_t handed_samples() const { return handed_samples_; }
  [[nodiscard]] bool failed() const { return failed_; }  ///< whether `next` has thrown
  /// Changes what is in use, up to the spec's threads and the ring's slots; batches stay the same. Makes
  /// slots and threads that were not used before; where that throws, the size stays.
  void resize(const PipelineSize& size);
  /// Where the caller stands: the current epoch's batches, and how many of them it has had.
  [[nodiscard]] std::uint64_t epoch() const { return start_.epoch; }
  [[nodiscard]] const EpochBatches& batches() const { return batches_; }
  [[nodiscard]] std::uint64_t next_batch() const { return next_batch_; }
  [[nodiscard]] const EpochStart& start() const { return start_; }
  /// How long threads were idle before the last `next`, all in sum.
  [[nodiscard]] double idle_seconds() const { return idle_seconds_; }
  [[nodiscard]] PipelineStats stats() const;
  void reset_stats();

 private:
  class RoomNotice;
  static constexpr std::uint64_t kNoSlot = ~std::uint64_t{0};
  struct Work {
    EpochPlan* plan = nullptr;
    std::shared_ptr<EpochPlan> kept;  // where no batch keeps the plan while a thread works
    std::uint64_t batch = 0;
    std::uint64_t number = 0;  // of the batch, over all epochs
    std::uint64_t begin = 0;   // of its samples [begin, end)
    std::uint64_t end = 0;
    bool sorts_batch = false;  // the slice is of the batch's samples sorted by chunk
    std::uint64_t chunk = 0;   // or this chunk is to be loaded
    bool loads = false;
    bool begins_epoch = false;     // it is the first chunk of an epoch that is loaded ahead
    bool plans = false;            // or the epoch behind that of `plan` is to be planned
    std::uint64_t slot = kNoSlot;  // in which the chunk is visited, where it is loaded ahead
    std::size_t target = 0;        // the ring's slot of the batch
  };
  /// A chunk that a thread loads ahead. Its plan may end before, if no batch needs the chunk.
  struct Loading {
    std::uint64_t epoch;
    std::uint64_t slot;
    bool operator==(const Loading&) const = default;
  };
  struct GivenOut {
    EpochPlan* plan = nullptr;
    std::uint64_t batch = 0;
    std::uint64_t size = 0;         // samples
    std::uint64_t slice = 0;        // of them, that a thread makes at a time
    std::uint64_t given = 0;        // of them, to threads
    std::uint64_t failed_from = 0;  // where the first slice begins that failed, if one did
    std::size_t target = 0;         // the ring's slot
    bool sorts_batch = false;       // as in BatchTask
    bool done = false;
    bool ready = false;  // done, and the caller has not given it back
  };
  void run(std::uint32_t thread, BatchAssembler& assembler, const std::stop_token& stop);
  void wait_for_work(std::uint32_t thread, Work& work, std::unique_lock<std::mutex>& lock,
                     const std::stop_token& stop);
  void start_threads(std::uint32_t count);
  void do_work(const Work& work, BatchAssembler& assembler, std::unique_lock<std::mutex>& lock);
  [[nodiscard]] bool take_work(Work& work);
  [[nodiscard]] bool take_plan(Work& work);
  [[nodiscard]] bool lacks_plan() const { return plan_error_ != nullptr && used_up_ == next_number_; }
  [[nodiscard]] bool makes_at_once(const EpochPlan& plan) const;
  [[nodiscard]] bool take_batch(Work& work, EpochPlan& plan);
  [[nodiscard]] bool take_slice(Work& work);
  [[nodiscard]] bool take_load(Work& work);
  [[nodiscard]] bool is_loaded(const EpochPlan& plan, std::uint64_t end_slot) const;
  [[nodiscard]] std::shared_ptr<EpochPlan> make_plan(std::uint64_t epoch, std::exception_ptr& error) const;
  void begin_visits(const EpochPlan& plan);
  void ask_ahead(const Work& work);
  void ask_for_batches(const Work& work);
  void load(const Work& work, BatchAssembler& assembler);
  [[nodiscard]] bool make(const Work& work, BatchAssembler& assembler);
  void fail(const Work& work);
  void finish(const Work& work);
  void release(EpochPlan& plan, std::uint64_t end_slot);
  [[nodiscard]] std::unique_lock<std::mutex> take_back(RoomNotice& notice);
  [[nodiscard]] std::size_t entry(std::uint64_t number) const { return number % given_out_.size(); }
  [[nodiscard]] GivenOut& given_out(std::uint64_t number) { return given_out_[entry(number)]; }

  const LoaderOrder& order_;
  ChunkCache& cache_;
  BatchSlots& ring_;
  const MakeBatchAssembler& make_assembler_;
  const PipelineSpec spec_;
  std::vector<std::unique_ptr<BatchAssembler>> assemblers_;  // one a thread

  mutable std::mutex mutex_;  // guards all below, up to the caller's own
  PipelineSize size_{0, 0, 0};
  std::condition_variable_any work_changed_;  // for threads that take work, so that no notice is lost
  std::condition_variable_any size_changed_;  // for parked ones
  std::condition_variable batch_ready_;
  bool is_planning_ = false;                             // a thread makes the next plan
  std::exception_ptr plan_error_;                        // of making it
  std::deque<std::shared_ptr<EpochPlan>> plans_;         // in order; each has batches that are not made yet
  std::vector<GivenOut> given_out_;                      // the batches that the ring holds, or is to hold
  std::vector<std::atomic<std::uint64_t>> slices_left_;  // of each of them; needs no lock
  std::vector<std::size_t> free_slots_;                  // the last is taken first: its memory was used last
  std::uint64_t oldest_number_ = 0;                      // of those that are not made yet
  std::uint64_t next_number_ = 0;                        // of the next batch to be given out
  std::uint64_t wanted_chunks_ = 0;
  std::vector<Loading> loading_;  // at most one a thread
  PipelineStats stats_;

  // The caller's own; what its `next` shares with the threads is `used_up_`, under the lock.
  std::uint64_t used_up_ = 0;  // batches that the caller gave back
  EpochStart start_;
  EpochBatches batches_;
  std::uint64_t next_batch_;
  std::uint64_t handed_samples_ = 0;
  double idle_seconds_ = 0;
  bool failed_ = false;
  std::atomic<std::size_t> running_ = 0;  // threads
  std::vector<std::jthread> threads_;
};

}  // namespace chunkhit
