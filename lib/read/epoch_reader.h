// Reads epochs of batches through a pipeline, which it begins, resumes and tunes.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "batch/epoch_batches.h"
#include "batch/loader_order.h"
#include "cache/chunk_cache.h"
#include "manifest/loader_state.h"
#include "read/batch_pipeline.h"
#include "read/cache_plan.h"
#include "read/loader_stats.h"
#include "read/reader_spec.h"
#include "read/tuner.h"

namespace chunkhit {

/// Message if there is no memory even for a source's index.
inline constexpr const char* kNoMemory =
    "opening it needs more memory than can be had: fewer or smaller sources need less";

/// Reads the chunks of a source as batches that assemblers make in the slots of a ring; the loader owns both.
class EpochReader {
 public:
  /// `sampling`: which samples an epoch has. Throws usage when memory does not suffice, or no
  /// batch is left.
  EpochReader(const ChunkSet& chunks, const EpochReaderSpec& spec, const SamplingSpec& sampling,
              BatchSlots& ring);

  [[nodiscard]] const EpochReaderSpec& spec() const { return spec_; }
  [[nodiscard]] const ChunkGrid& grid() const { return grid_; }
  [[nodiscard]] ChunkCache& cache() { return *cache_; }
  [[nodiscard]] BatchChunksSpec batch_chunks() const;
  /// Memory for pixels of images of their own sizes, and what tells it from others (arena_id).
  [[nodiscard]] std::uint64_t image_bytes() const { return plan_.image_bytes; }
  /// The same where they are not shared.
  [[nodiscard]] std::uint64_t own_image_bytes() const { return plan_.own_image_bytes; }
  [[nodiscard]] std::optional<std::uint64_t> image_arena() const {
    if (!plan_.arena_is_shared) return std::nullopt;
    return arena_id(chunks_, Kept::pixels, spec_.check_hashes != CheckHashes::never);
  }
  /// Must be called before the first batch; the assemblers' memory must outlive this.
  void set_assembler(MakeBatchAssembler make_assembler) { make_assembler_ = std::move(make_assembler); }

  /// Begins an epoch, or resumes it where `restore` left it; throws usage for another one, where that has
  /// batches left.
  void begin(std::uint64_t epoch);
  /// The slot of the next batch of the epoch that was begun last, or nothing at its end.
  [[nodiscard]] std::optional<std::size_t> next();
  /// Waits up to `timeout` for the next batch; returns whether it is ready. Takes the slot back that was
  /// given.
  [[nodiscard]] bool wait_for(std::chrono::milliseconds timeout);
  [[nodiscard]] std::uint64_t batch_count() const { return batches({}).batch_count(); }
  [[nodiscard]] MixingInfo mixing() const { return order_.mixing(); }
  /// Samples of an epoch, of all ranks.
  [[nodiscard]] std::uint64_t epoch_samples() const { return order_.position_count(); }
  [[nodiscard]] LoaderStats stats() const;
  void reset_stats();
  [[nodiscard]] std::string state() const { return loader_state_text(current_state()); }
  void restore(const std::string& state);
  /// Whether this is another process than the one that made it, which has none of the threads.
  [[nodiscard]] bool is_forked() const;

 private:
  [[nodiscard]] EpochBatches batches(const EpochStart& start) const;
  void require_own_process() const;
  void require_nothing_left(std::uint64_t epoch) const;
  void begin_epoch(std::uint64_t epoch);
  [[nodiscard]] bool keeps_chunks() const;
  [[nodiscard]] std::string old_pack_notice() const;
  [[nodiscard]] PipelineSize pipeline_size(const TunerSetting& setting) const;
  void tune();
  void use(const TunerSetting& setting);
  void start_pipeline(const EpochStart& start);
  [[nodiscard]] std::unique_ptr<BatchPipeline> make_pipeline(const EpochStart& start);
  [[noreturn]] void fail_empty_epoch();
  [[nodiscard]] std::optional<std::size_t> next_slot();
  void prepare_next();
  [[nodiscard]] LoaderState current_state() const;
  [[nodiscard]] std::uint64_t padded_samples() const;

  const ChunkSet& chunks_;
  EpochReaderSpec spec_;
  ChunkGrid grid_;
  LoaderOrder order_;
  std::uint64_t chunks_in_order_;  // that a batch needs at a time
  CachePlan plan_;
  std::unique_ptr<ChunkCache> cache_;
  BatchSlots& ring_;
  MakeBatchAssembler make_assembler_;
  std::unique_ptr<BatchPipeline> pipeline_;
  std::optional<EpochStart> restored_;  // where the next begin() resumes
  bool at_end_ = false;                 // of the epoch that was begun last
  bool has_batch_ = false;              // of that epoch, or one was had before the state was restored
  PipelineStats before_;                // of pipelines that are gone
  CallerClock clock_;
  TunerSetting setting_;
  std::optional<Tuner> tuner_;  // where threads or batches ahead are automatic
  BatchTimes tuned_;            // the sums of times and samples that the tuner has had
  pid_t process_;
};

/// The positions that all ranks have used once `state.batches` of the batches are; nothing in the midst of a
/// block.
[[nodiscard]] std::optional<std::uint64_t> positions_done(const EpochBatches& batches,
                                                          const LoaderState& state);

/// Where a loader resumes whose own state is `own`; throws usage, naming the field, for a state of other
/// samples, of another order, sampler or augment, or with numbers that no loader of epochs of so many samples
/// writes.
[[nodiscard]] EpochStart start_of(const LoaderState& state, const LoaderState& own,
                                  std::uint64_t epoch_samples);

}  // namespace chunkhit
