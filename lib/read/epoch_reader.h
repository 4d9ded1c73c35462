// Checks whether a state fits a loader, and returns its position.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/cpu.h"
#include "batch/epoch_batches.h"
#include "batch/epoch_order.h"
#include "cache/chunk_cache.h"
#include "manifest/loader_state.h"
#include "read/batch_pipeline.h"
#include "read/cache_plan.h"
#include "read/loader_stats.h"

namespace chunkhit {

/// Checks and takes the options that all loaders have in common.
struct EpochReaderSpec {
  OrderSpec order;
  BatchSpec batches;
  Cache cache = Cache::automatic;
  std::uint64_t cache_bytes = 0;
  std::uint32_t threads = 1;
  std::uint32_t prefetch = 4;
  std::string cache_dir = {};
  std::uint64_t cache_disk_bytes = 0;
  CheckHashes check_hashes = CheckHashes::first_use;
  OnCorrupt on_corrupt = OnCorrupt::fail;
  bool holds_all = false;  ///< a batch needs all of its chunks at a time, in any order
  std::uint64_t slice_samples = ~std::uint64_t{0};           ///< of a batch, that a thread makes at a time
  std::vector<std::pair<std::string, double>> augment = {};  ///< what a state must have, too, to go on
};

/// How many batches are there at a time.
[[nodiscard]] inline std::size_t ring_size(const EpochReaderSpec& spec) {
  return ring_size(spec.threads, spec.prefetch, (spec.batches.batch_size - 1) / spec.slice_samples + 1);
}

/// Throws usage with `what` unless `holds`.
void require_option(bool holds, const char* what);

/// Takes the spec from a loader's options; throws usage, naming the field, when they make no sense.
template <class Options>
[[nodiscard]] EpochReaderSpec epoch_reader_spec(const Options& options) {
  require_option(options.batch_size >= 1, "batch_size: must be at least 1");
  require_option(options.batch_size <= UINT32_MAX, "batch_size: must be less than 2^32");
  require_option(options.window_chunks >= 1, "window_chunks: must be at least 1");
  require_option(options.world_size >= 1, "world_size: must be at least 1");
  require_option(options.rank < options.world_size, "rank: must be less than world_size");
  require_option(options.echo >= 1, "echo: must be at least 1");
  require_option(options.prefetch >= 1, "prefetch: must be at least 1");
  require_option(options.prefetch <= 4096, "prefetch: must be at most 4096");
  require_option(options.threads <= 4096, "threads: must be at most 4096");
  require_option(options.cache_disk_bytes == 0 || !options.cache_dir.empty(),
                 "cache_disk_bytes: needs cache_dir, the folder for these bytes");
  require_option(!options.allocator.allocate == !options.allocator.release,
                 "allocator: must have both functions, or none");
  return {.order = {options.shuffle, options.seed, options.window_chunks},
          .batches = {options.batch_size, options.rank, options.world_size, options.rank_remainder,
                      options.drop_last, options.echo},
          .cache = options.cache,
          .cache_bytes = options.cache_bytes,
          .threads = options.threads == 0 ? allowed_cpus() : options.threads,
          .prefetch = options.prefetch,
          .cache_dir = options.cache_dir,
          .cache_disk_bytes = options.cache_disk_bytes,
          .check_hashes = options.check_hashes,
          .on_corrupt = options.on_corrupt};
}

/// Message if there is no memory even for a source's index.
inline constexpr const char* kNoMemory =
    "opening it needs more memory than can be had: fewer or smaller sources need less";

/// Reads the chunks of a source as batches that someone else's makers make in the slots of a ring.
class EpochReader {
 public:
  /// Throws usage when memory does not suffice, or no batch is left.
  EpochReader(const ChunkSet& chunks, const EpochReaderSpec& spec, BatchSlots& ring);

  [[nodiscard]] const EpochReaderSpec& spec() const { return spec_; }
  [[nodiscard]] const ChunkGrid& grid() const { return grid_; }
  [[nodiscard]] ChunkCache& cache() { return cache_; }
  [[nodiscard]] BatchChunksSpec batch_chunks() const;
  /// Memory for pixels of images of their own sizes.
  [[nodiscard]] std::uint64_t image_bytes() const { return plan_.image_bytes; }
  /// Must be called before the first batch; the makers' memory must outlive this.
  void set_maker(MakeBatchAssembler make_maker) { make_maker_ = std::move(make_maker); }

  /// Begins an epoch, or resumes it where `restore` left it; throws usage for another one, where that has
  /// batches left.
  void begin(std::uint64_t epoch);
  /// The slot of the next batch of the epoch that was begun last, or nothing at its end.
  [[nodiscard]] std::optional<std::size_t> next();
  /// Waits up to `timeout` for the next batch; returns whether it is ready. Takes the slot back that was
  /// given.
  [[nodiscard]] bool wait_for(std::chrono::milliseconds timeout);
  [[nodiscard]] std::uint64_t batch_count() const { return batches(0).batch_count(); }
  [[nodiscard]] MixingInfo mixing() const { return mixing_of(grid_, spec_.order); }
  [[nodiscard]] LoaderStats stats() const;
  void reset_stats();
  [[nodiscard]] std::string state() const { return loader_state_text(current_state()); }
  void restore(const std::string& state);
  /// Whether this is another process than the one that made it, which has none of the threads.
  [[nodiscard]] bool is_forked() const;

 private:
  [[nodiscard]] EpochBatches batches(std::uint64_t epoch, std::uint64_t first_position = 0) const;
  void require_own_process() const;
  void require_nothing_left(std::uint64_t epoch) const;
  void begin_epoch(std::uint64_t epoch);
  [[nodiscard]] bool keeps_chunks() const;
  void start_pipeline(const EpochStart& start);
  [[nodiscard]] std::unique_ptr<BatchPipeline> make_pipeline(const EpochStart& start);
  [[nodiscard]] std::optional<std::size_t> next_slot();
  void prepare_next();
  [[nodiscard]] LoaderState current_state() const;

  const ChunkSet& chunks_;
  EpochReaderSpec spec_;
  ChunkGrid grid_;
  CachePlan plan_;
  ChunkCache cache_;
  BatchSlots& ring_;
  MakeBatchAssembler make_maker_;
  std::unique_ptr<BatchPipeline> pipeline_;
  std::optional<EpochStart> restored_;  // where the next begin() resumes
  bool at_end_ = false;                 // of the epoch that was begun last
  PipelineStats before_;                // of pipelines that are gone
  CallerClock clock_;
  pid_t process_;
};

/// The positions that all ranks have used once `state.batches` of the batches are; nothing in the midst of a
/// block.
[[nodiscard]] std::optional<std::uint64_t> positions_done(const EpochBatches& batches,
                                                          const LoaderState& state);

/// Where a loader resumes whose own state is `own`; throws usage, naming the field, for a state of other
/// samples, of another order or augment, or with numbers that no loader of so many samples writes.
[[nodiscard]] EpochStart start_of(const LoaderState& state, const LoaderState& own,
                                  std::uint64_t sample_count);

}  // namespace chunkhit
