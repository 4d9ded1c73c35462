#include "read/epoch_reader.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "chunkhit/error.h"

namespace chunkhit {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::array<std::string_view, 3> kShuffleNames{"none", "window", "global"};
constexpr std::array<std::string_view, 2> kUnevenNames{"pad", "drop"};

/// The chunks that may be needed at a time.
std::uint64_t chunks_needed(const EpochReaderSpec& spec, const ChunkGrid& grid) {
  const BatchSpec& batches = spec.batches;
  if (spec.order.shuffle == Shuffle::global) {
    const std::uint64_t of_batch = spec.holds_all ? std::min(grid.chunk_count(), batches.batch_size) : 1;
    return std::min(grid.chunk_count(), of_batch * spec.threads);
  }
  const std::uint64_t places = batches.batch_size * batches.world_size * batches.echo /
                               std::max<std::uint64_t>(1, grid.chunk_samples());
  const std::uint64_t window = spec.order.shuffle == Shuffle::window ? spec.order.window_chunks : 1;
  return std::min(grid.chunk_count(), (places + window) / window * window + window);
}

ResidencySpec residency_spec(const EpochReaderSpec& spec, const ChunkGrid& grid) {
  return {.residency = spec.residency,
          .memory_bytes = spec.memory_bytes,
          .chunks_needed = chunks_needed(spec, grid),
          .threads = spec.threads,
          .in_order = spec.order.shuffle != Shuffle::global};
}

[[noreturn]] void refuse_state(const std::string& what) {
  throw Error(ErrorCode::usage, "loader state: " + what);
}

/// Refuses a state of other samples or of another order.
void check_same_order(const LoaderState& state, const LoaderState& own, Shuffle shuffle) {
  if (state.source != own.source) refuse_state("belongs to another source");
  if (state.shuffle != own.shuffle) refuse_state("shuffle: " + state.shuffle + ", expected " + own.shuffle);
  if (state.seed != own.seed)
    refuse_state("seed: " + std::to_string(state.seed) + ", expected " + std::to_string(own.seed));
  if (state.window_chunks != own.window_chunks && shuffle == Shuffle::window)
    refuse_state("window_chunks: " + std::to_string(state.window_chunks) + ", expected " +
                 std::to_string(own.window_chunks));
}

bool has_same_batches(const LoaderState& a, const LoaderState& b) {
  return a.batch_size == b.batch_size && a.world_size == b.world_size && a.echo == b.echo &&
         a.uneven == b.uneven && a.drop_last == b.drop_last;
}

}  // namespace

void require_option(bool holds, const char* what) {
  if (!holds) throw Error(ErrorCode::usage, what);
}

EpochReader::EpochReader(const ChunkSet& chunks, const EpochReaderSpec& spec)
    : chunks_(chunks),
      spec_(spec),
      grid_(chunks.sample_counts()),
      plan_(plan_residency(chunks, residency_spec(spec, grid_))),
      cache_(chunks, {plan_.residency, spec.check_hashes, spec.on_corrupt, plan_.kept_chunks}),
      process_(::getpid()) {
  require_option(batch_count() > 0, "batch_size: no batch is left of so few samples (uneven, drop_last)");
}

BatchChunksSpec EpochReader::batch_chunks() const {
  return {spec_.batches.batch_size, spec_.order.shuffle != Shuffle::global || spec_.holds_all,
          !spec_.holds_all};
}

EpochBatches EpochReader::batches(std::uint64_t epoch, std::uint64_t first_place) const {
  return {chunks_.sample_count(), spec_.batches, spec_.order.seed, epoch, first_place};
}

bool EpochReader::is_forked() const { return ::getpid() != process_; }

void EpochReader::require_own_process() const {
  if (is_forked())
    throw Error(ErrorCode::usage,
                "this loader was made before the process was forked; make one in each child");
}

// Statistics outlive a pipeline.
void EpochReader::start_pipeline(const EpochStart& start) {
  if (pipeline_) before_.add(pipeline_->stats());
  pipeline_.reset();
  pipeline_ = std::make_unique<BatchPipeline>(
      grid_, cache_, make_maker_,
      PipelineSpec{spec_.order, spec_.batches, spec_.threads, spec_.prefetch,
                   spec_.order.shuffle != Shuffle::global, plan_.chunks_ahead},
      start);
}

void EpochReader::begin(std::uint64_t epoch) {
  require_own_process();
  const EpochStart start = restored_ && restored_->epoch == epoch ? *restored_ : EpochStart{epoch, 0, 0};
  const bool is_there = pipeline_ && !restored_ && pipeline_->epoch() == epoch &&
                        pipeline_->start().first_place == 0 && pipeline_->next_batch() == 0 &&
                        !pipeline_->failed();
  if (!is_there) start_pipeline(start);
  restored_.reset();
  at_end_ = false;
}

void EpochReader::prepare_next() {
  require_own_process();
  if (!pipeline_ || restored_) begin(restored_ ? restored_->epoch : 0);
  if (!first_request_ && !at_end_) first_request_ = Clock::now();
}

bool EpochReader::wait(std::chrono::milliseconds at_most) {
  prepare_next();
  return at_end_ || pipeline_->wait(at_most);
}

std::optional<std::size_t> EpochReader::next() {
  prepare_next();
  if (at_end_) return std::nullopt;
  std::optional<std::size_t> slot = pipeline_->next();
  // A batch of which OnCorrupt::skip has left nothing is none.
  while (slot && pipeline_->handed_samples() == 0) slot = pipeline_->next();
  last_answer_ = Clock::now();
  at_end_ = !slot;
  return slot;
}

LoaderState EpochReader::current_state() const {
  LoaderState state;
  state.source = chunks_.id();
  state.shuffle = kShuffleNames[static_cast<std::size_t>(spec_.order.shuffle)];
  state.seed = spec_.order.seed;
  state.window_chunks = spec_.order.window_chunks;
  state.batch_size = spec_.batches.batch_size;
  state.world_size = spec_.batches.world_size;
  state.echo = spec_.batches.echo;
  state.uneven = kUnevenNames[static_cast<std::size_t>(spec_.batches.uneven)];
  state.drop_last = spec_.batches.drop_last;
  const bool runs = pipeline_ && !restored_;
  const EpochStart start = runs ? pipeline_->start() : restored_.value_or(EpochStart{});
  state.epoch = start.epoch;
  state.first_place = start.first_place;
  state.batches = runs ? pipeline_->next_batch() : start.first_batch;
  if (state.batches == 0) {
    state.places = start.first_place;
  } else {
    const EpochBatches::Batch last = batches(start.epoch, start.first_place).batch(state.batches - 1);
    if (last.ends_block) state.places = last.places_done;
  }
  return state;
}

EpochStart EpochReader::start_of(const LoaderState& state) const {
  const LoaderState own = current_state();
  check_same_order(state, own, spec_.order.shuffle);
  const std::uint64_t size = chunks_.sample_count();
  if (state.first_place > size || state.places.value_or(0) > size + state.world_size)
    refuse_state("lies behind the last sample");
  if (has_same_batches(state, own)) {
    if (state.batches > batches(state.epoch, state.first_place).batch_count())
      refuse_state("lies behind the last batch");
    return {state.epoch, state.first_place, state.batches};
  }
  if (!state.places)
    refuse_state(
        "other batch_size, world_size, echo, uneven or drop_last can only go on where a block of echoed "
        "batches ends");
  return {state.epoch, std::min(*state.places, size), 0};
}

void EpochReader::restore(const std::string& state) {
  require_own_process();
  restored_ = start_of(parse_loader_state(state));
}

LoaderStats EpochReader::stats() const {
  PipelineStats pipeline = before_;
  if (pipeline_) pipeline.add(pipeline_->stats());
  const ChunkCacheStats cache = cache_.stats();
  LoaderStats stats;
  if (first_request_) stats.seconds = std::chrono::duration<double>(last_answer_ - *first_request_).count();
  stats.wait_seconds = pipeline.wait_seconds;
  stats.step_seconds = pipeline.step_seconds;
  stats.fetch_seconds = cache.fetch_seconds + pipeline.made.page_seconds;
  stats.decode_seconds = cache.decode_seconds;
  stats.assemble_seconds = pipeline.made.assemble_seconds;
  stats.idle_seconds = pipeline.idle_seconds;
  stats.batches = pipeline.batches;
  stats.samples = pipeline.samples;
  stats.batch_bytes = pipeline.batch_bytes;
  stats.stored_bytes = cache.stored_bytes;
  stats.chunk_hits = pipeline.made.chunk_hits;
  stats.chunk_misses = pipeline.made.chunk_misses;
  stats.chunk_fetches = cache.fetches;
  stats.corrupt_chunks = cache.corrupt_chunks;
  stats.corrupt_samples = pipeline.corrupt_samples;
  stats.residency = plan_.residency;
  stats.threads = spec_.threads;
  return stats;
}

void EpochReader::reset_stats() {
  before_ = {};
  if (pipeline_) pipeline_->reset_stats();
  cache_.reset_stats();
  first_request_.reset();
}

}  // namespace chunkhit
