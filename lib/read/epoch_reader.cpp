#include "read/epoch_reader.h"

#include <unistd.h>

#include <algorithm>
#include <exception>
#include <system_error>

#include "base/hash.h"
#include "base/resources.h"
#include "base/text.h"
#include "base/throw_error.h"
#include "base/words.h"
#include "chunkhit/error.h"
#include "types/enum_names.h"

namespace chunkhit {
namespace {

/// So many that no number of uses of a sample in a mixture, over all epochs, takes more than 64 bits.
constexpr std::uint64_t kMaxEpochs = 1'000'000'000;

bool is_global(const EpochReaderSpec& spec) { return spec.order.shuffle == Shuffle::global; }

/// Gives what `work` gives; turns failures to allocate or to start threads into errors that name the option
/// to lower.
template <class Work>
auto with_threads(std::uint64_t batch_size, std::uint32_t threads, const Work& work) {
  try {
    return with_memory("batches of " + count_text(batch_size, "sample") + " on " +
                           count_text(threads, "thread") +
                           " need more memory than can be had: lower `batch_size` or `threads`",
                       work);
  } catch (const std::system_error& error) {
    throw Error(ErrorCode::try_again, "`threads`: the system does not start " + std::to_string(threads) +
                                          " (" + error.what() + "): give fewer");
  }
}

/// Returns a tuner where the spec asks for one.
std::optional<Tuner> make_tuner(const EpochReaderSpec& spec) {
  if (!spec.tunes_threads && !spec.tunes_prefetch) return std::nullopt;
  const TunerSetting first{spec.threads, spec.prefetch};
  return Tuner({.first = first,
                .min = {spec.tunes_threads ? 1 : spec.threads, spec.prefetch},
                .max = {spec.max_threads, spec.max_prefetch},
                .cpus = cpu_share(),
                .batch_slices = (spec.batches.batch_size - 1) / spec.slice_samples + 1});
}

/// Says why an epoch has no batch: of a rank's samples, which rank_remainder rounds, drop_last leaves none.
std::string no_batch_text(const BatchSpec& spec, std::uint64_t samples) {
  return "batch_size: no batch of " + count_text(spec.batch_size, "sample") +
         " is left: " + count_text(samples, "sample") + " for " + count_text(spec.world_size, "rank") +
         "; lower `batch_size`, or change `drop_last` or `rank_remainder`";
}

}  // namespace

EpochReader::EpochReader(const ChunkSet& chunks, const EpochReaderSpec& spec, const SamplingSpec& sampling,
                         BatchSlots& ring)
    : chunks_(chunks),
      spec_(spec),
      grid_(chunks.epoch_counts(), chunks.serves_ratings()),
      order_(grid_, spec.order, sampling),
      chunks_in_order_(chunks_in_order(spec_, order_)),
      plan_(plan_reader(chunks, chunks_in_order_, spec_)),
      cache_(make_chunk_cache(chunks,
                              {plan_.cache,
                               plan_.is_unchecked ? CheckHashes::never : spec.check_hashes,
                               spec.on_corrupt,
                               plan_.kept_chunks,
                               plan_.chunks_ahead,
                               plan_.reads_samples,
                               {spec.cache_dir, spec.cache_disk_bytes, plan_.max_asked}},
                              std::move(plan_.arena))),
      ring_(ring),
      setting_{spec_.threads, spec_.prefetch},
      tuner_(make_tuner(spec_)),
      process_(::getpid()) {
  if (batch_count() == 0) throw_usage(no_batch_text(spec_.batches, epoch_samples()));
}

BatchChunksSpec EpochReader::batch_chunks() const {
  const std::uint64_t size = spec_.batches.batch_size;
  const bool comes_and_goes = plan_.cache != Cache::decoded && !plan_.reads_samples;
  return {
      .slice_samples = std::min(size, spec_.slice_samples),
      .batch_size = size,
      .holds_all = !is_global(spec_) || spec_.holds_all,
      .by_chunk = !spec_.holds_all,
      .sorts_batch = is_global(spec_) && !spec_.holds_all && comes_and_goes && spec_.slice_samples < size};
}

EpochBatches EpochReader::batches(const EpochStart& start) const {
  return batches_of(order_, spec_.batches, start, spec_.streams);
}

bool EpochReader::is_forked() const { return ::getpid() != process_; }

void EpochReader::require_own_process() const { chunkhit::require_own_process(process_, "loader"); }

// Returns whether all chunks of a batch, and those being loaded, stay cached until the last one is loaded.
bool EpochReader::keeps_chunks() const {
  if (plan_.cache == Cache::decoded) return true;
  return plan_.kept_chunks >= spec_.batches.batch_size + spec_.max_threads;
}

/// Says what old packs lack that have no hashes of samples; nothing where that costs nothing.
std::string EpochReader::old_pack_notice() const {
  const bool reads_chunks = is_global(spec_) && plan_.cache == Cache::none && chunks_.is_raw() &&
                            spec_.check_hashes != CheckHashes::never && !chunks_.compares_samples();
  if (!plan_.is_unchecked && !reads_chunks) return "";
  return std::string("a pack of an older version has no hash of each sample: ") +
         (plan_.is_unchecked ? "they are read without a comparison, as cache_bytes is too small for chunks"
                             : "whole chunks are read for single samples") +
         "; pack again, or give more cache_bytes";
}

// Chunks are read ahead for the next batches' order, and one more by each thread.
PipelineSize EpochReader::pipeline_size(const TunerSetting& setting) const {
  const std::uint64_t chunks_ahead =
      2 * chunks_needed(spec_, grid_.chunk_count(), chunks_in_order_, setting.threads) + setting.threads;
  return {
      .threads = setting.threads,
      .slots = ring_size(spec_, setting.threads, setting.prefetch),
      .chunks_ahead = static_cast<std::size_t>(std::min<std::uint64_t>(plan_.chunks_ahead, chunks_ahead))};
}

/// Tells the tuner what the last batch took, and changes the pipeline if it wants to.
void EpochReader::tune() {
  if (!tuner_ || !pipeline_ || at_end_) return;
  const BatchTimes sums{clock_.wait_seconds(), clock_.step_seconds(), pipeline_->idle_seconds(),
                        pipeline_->handed_samples()};
  const BatchTimes before = std::exchange(tuned_, sums);
  // After a reset of the statistics, or of the pipeline, sums begin at 0 again.
  if (sums.samples == 0 || sums.step_seconds <= before.step_seconds) return;
  const TunerSetting wanted =
      tuner_->add({.wait_seconds = sums.wait_seconds - before.wait_seconds,
                   .step_seconds = sums.step_seconds - before.step_seconds,
                   .idle_seconds = std::max(0.0, sums.idle_seconds - before.idle_seconds),
                   .samples = sums.samples});
  if (wanted == setting_) return;
  try {
    use(wanted);
  } catch (const std::exception& error) {  // of an allocator, too
    use(tuner_->refuse(error.what()));
  }
}

void EpochReader::use(const TunerSetting& setting) {
  with_threads(spec_.batches.batch_size, setting.threads, [&] { pipeline_->resize(pipeline_size(setting)); });
  setting_ = setting;
}

std::unique_ptr<BatchPipeline> EpochReader::make_pipeline(const EpochStart& start) {
  const PipelineSpec spec{.batches = spec_.batches,
                          .max_threads = spec_.max_threads,
                          .loads_ahead = !is_global(spec_),
                          .keeps_chunks = keeps_chunks(),
                          .slice_samples = spec_.slice_samples,
                          .streams = spec_.streams,
                          .grid = chunks_.serves_ratings() ? &grid_ : nullptr};
  return with_threads(spec_.batches.batch_size, setting_.threads, [&] {
    return std::make_unique<BatchPipeline>(order_, *cache_, ring_, make_assembler_, spec,
                                           pipeline_size(setting_), start);
  });
}

// Statistics cover all pipelines of a reader, so those of the old one are added up first.
void EpochReader::start_pipeline(const EpochStart& start) {
  if (pipeline_) before_.add(pipeline_->stats());
  pipeline_.reset();
  pipeline_ = make_pipeline(start);
}

/// Throws usage if beginning `epoch` would drop the position that `restore` set.
void EpochReader::require_nothing_left(std::uint64_t epoch) const {
  if (!restored_ || restored_->epoch == epoch) return;
  const EpochStart& at = *restored_;
  const bool is_begun = at.first_position != 0 || at.first_batch != 0;
  const std::uint64_t count = batches(at).batch_count();
  if (is_begun && at.first_batch < count)
    throw_usage("epoch " + std::to_string(epoch) + ": the restored state stands in epoch " +
                std::to_string(at.epoch) + ", of which " + std::to_string(count - at.first_batch) +
                " batches are left: go on with that one, or make another loader");
}

void EpochReader::begin(std::uint64_t epoch) {
  require_own_process();
  if (epoch >= kMaxEpochs)
    throw_usage("epoch: " + std::to_string(epoch) + ", expected less than " + std::to_string(kMaxEpochs));
  require_nothing_left(epoch);
  clock_.enter();
  begin_epoch(epoch);
  clock_.leave(false);
}

void EpochReader::begin_epoch(std::uint64_t epoch) {
  const EpochStart start = restored_ && restored_->epoch == epoch ? *restored_ : EpochStart{.epoch = epoch};
  // A pipeline prefetches into the next epoch: it is used as it is if it already stands at its first batch.
  const bool is_ready = pipeline_ && !restored_ && pipeline_->epoch() == epoch &&
                        pipeline_->start().first_position == 0 && pipeline_->next_batch() == 0 &&
                        !pipeline_->failed();
  if (!is_ready) start_pipeline(start);
  restored_.reset();
  at_end_ = false;
  has_batch_ = start.first_position != 0 || start.first_batch != 0;
}

/// Training may call `next` without `begin`: it then starts with epoch 0 or the restored position.
void EpochReader::prepare_next() {
  require_own_process();
  if (!at_end_ || restored_) clock_.start();
  clock_.enter();
  if (!pipeline_ || restored_) begin_epoch(restored_ ? restored_->epoch : 0);
}

bool EpochReader::wait_for(std::chrono::milliseconds timeout) {
  prepare_next();
  const bool is_ready = at_end_ || pipeline_->wait_for(timeout);
  clock_.leave(false);
  return is_ready;
}

std::optional<std::size_t> EpochReader::next() {
  prepare_next();
  tune();
  const std::optional<std::size_t> slot = next_slot();
  at_end_ = !slot;
  clock_.leave(!at_end_);
  return slot;
}

/// An epoch without a batch would train nothing, in silence.
void EpochReader::fail_empty_epoch() {
  at_end_ = true;
  throw_bad_data(
      "`on_corrupt` skip: no sample of the epoch is left, because all of its chunks are damaged, as in " +
      chunks_.parts()[0]->path() + "; pack-verify names them");
}

std::optional<std::size_t> EpochReader::next_slot() {
  if (at_end_) return std::nullopt;
  return with_memory(
      "chunks and batches need more memory than can be had: lower cache_bytes, batch_size or threads", [&] {
        std::optional<std::size_t> slot = pipeline_->next();
        // A batch that OnCorrupt::skip has emptied is not handed out.
        const bool is_emptied = slot && pipeline_->handed_samples() == 0;
        while (slot && pipeline_->handed_samples() == 0) slot = pipeline_->next();
        if (!slot && is_emptied && !has_batch_) fail_empty_epoch();
        has_batch_ = true;
        return slot;
      });
}

LoaderState EpochReader::current_state() const {
  LoaderState state;
  state.source = chunks_.id();
  state.shuffle = name_of(spec_.order.shuffle);
  state.seed = spec_.order.seed;
  state.window_chunks = spec_.order.window_chunks;
  state.sampler = order_.sampler_id();
  state.batch_size = spec_.batches.batch_size;
  state.world_size = spec_.batches.world_size;
  state.echo = spec_.batches.echo;
  state.rank_remainder = name_of(spec_.batches.rank_remainder);
  state.drop_last = spec_.batches.drop_last;
  state.augment = spec_.augment;
  // A restored position that was not used yet is still the current one.
  const bool runs = pipeline_ && !restored_;
  const EpochStart start = runs ? pipeline_->start() : restored_.value_or(EpochStart{});
  state.epoch = start.epoch;
  state.first_position = start.first_position;
  state.batches = runs ? pipeline_->next_batch() : start.first_batch;
  const Streams streams = start.streams.value_or(spec_.streams);
  state.streams = streams.count;
  state.stream_unit = streams.unit;
  state.positions = positions_done(batches(start), state);
  return state;
}

/// The position takes effect with the next `begin` or `next`.
void EpochReader::restore(const std::string& state) {
  require_own_process();
  restored_ = start_of(parse_loader_state(state), current_state(), order_.position_count());
}

/// Samples that an epoch of an evaluation uses twice. Training, which is shuffled or changes images at
/// random, does not mind.
std::uint64_t EpochReader::padded_samples() const {
  const BatchSpec& batches = spec_.batches;
  const bool is_random = std::ranges::any_of(spec_.augment, [](const auto& field) {
    return field.second != 0 && (field.first.starts_with("flip_") || field.first == "quarter_turns" ||
                                 field.first == "random_crop" || field.first.starts_with("resized_crop"));
  });
  if (spec_.order.shuffle != Shuffle::none || is_random || batches.drop_last ||
      batches.rank_remainder != RankRemainder::pad)
    return 0;
  const std::uint64_t left = order_.position_count() % batches.world_size;
  return left == 0 ? 0 : batches.world_size - left;
}

LoaderStats EpochReader::stats() const {
  PipelineStats pipeline = before_;
  if (pipeline_) pipeline.add(pipeline_->stats());
  const ChunkCacheStats cache = cache_->stats();
  LoaderStats stats;
  stats.wait_seconds = clock_.wait_seconds();
  stats.step_seconds = clock_.step_seconds();
  stats.seconds = stats.wait_seconds + stats.step_seconds;
  stats.fetch_seconds = cache.fetch_seconds + pipeline.made.page_seconds;
  stats.decode_seconds = cache.decode_seconds + pipeline.made.decode_seconds;
  stats.assemble_seconds = pipeline.made.assemble_seconds;
  stats.idle_seconds = pipeline.idle_seconds;
  stats.batches = pipeline.batches;
  stats.samples = pipeline.samples;
  stats.batch_bytes = pipeline.batch_bytes;
  stats.stored_bytes = cache.stored_bytes + pipeline.made.read_bytes;
  stats.chunk_hits = pipeline.made.chunk_hits;
  stats.chunk_misses = pipeline.made.chunk_misses;
  stats.chunk_fetches = cache.fetches;
  stats.shared_chunks = cache.shared_chunks;
  stats.corrupt_chunks = cache.corrupt_chunks;
  stats.remote_bytes = cache.prepared.remote_bytes;
  stats.disk_chunks = cache.prepared.disk_chunks;
  stats.notices = cache.prepared.notices;
  if (!plan_.notice.empty()) stats.notices.push_back(plan_.notice);
  if (std::string notice = old_pack_notice(); !notice.empty()) stats.notices.push_back(std::move(notice));
  if (spec_.batches.world_size == 1 && all_processes() > 1)
    stats.notices.push_back("each of " + count_text(all_processes(), "process") +
                            " reads all samples, as world_size is 1: training needs `rank` and `world_size`");
  if (const std::uint64_t twice = padded_samples(); twice > 0)
    stats.notices.push_back(count_text(twice, "sample") + (twice == 1 ? " is" : " are") +
                            " used twice, by rank_remainder pad: sums of an evaluation count " +
                            (twice == 1 ? "it" : "them") +
                            " twice; give each rank a subset of its own, and world_size 1");
  stats.corrupt_samples = pipeline.corrupt_samples;
  stats.cache = plan_.reported;
  stats.threads = setting_.threads;
  stats.prefetch = setting_.prefetch;
  if (tuner_) stats.tuning = tuner_->log();
  stats.has_settled = tuner_ && tuner_->is_settled();
  return stats;
}

void EpochReader::reset_stats() {
  before_ = {};
  if (pipeline_) pipeline_->reset_stats();
  cache_->reset_stats();
  clock_ = {};
}

namespace {

[[noreturn]] void refuse_state(const std::string& what) { throw_usage("loader state: " + what); }

/// Throws usage for a state of other samples or of another order.
void check_same_order(const LoaderState& state, const LoaderState& own) {
  if (state.source != own.source) refuse_state("belongs to another source");
  if (state.shuffle != own.shuffle) refuse_state("shuffle: " + state.shuffle + ", expected " + own.shuffle);
  if (state.seed != own.seed)
    refuse_state("seed: " + std::to_string(state.seed) + ", expected " + std::to_string(own.seed));
  if (state.window_chunks != own.window_chunks && own.shuffle == "window")
    refuse_state("window_chunks: " + std::to_string(state.window_chunks) + ", expected " +
                 std::to_string(own.window_chunks));
  const auto text = [](const std::optional<std::uint64_t>& id) { return id ? hash_text(*id) : "none"; };
  if (state.sampler != own.sampler)
    refuse_state("sampler: " + text(state.sampler) + ", expected " + text(own.sampler) +
                 ": subset, weights, mixture, replacement and epoch_samples must be those of the loader that "
                 "wrote it");
}

/// Throws usage for a state with other augmentation: samples would differ from those of the first run.
void check_same_augment(const LoaderState& state, const LoaderState& own) {
  const auto text = [](const LoaderState& of, const std::string& name) {
    for (const auto& [key, value] : of.augment)
      if (key == name) return number_text(value);
    return std::string("nothing");
  };
  for (const LoaderState* const each : {&state, &own})
    for (const auto& [name, value] : each->augment)
      if (text(state, name) != text(own, name))
        refuse_state("augment." + name + ": " + text(state, name) + ", expected " + text(own, name));
}

/// Returns the first option that makes batches differ, "batch_size: 8, expected 16"; empty if none does.
std::string difference_of_batches(const LoaderState& state, const LoaderState& own) {
  const auto text = [](const char* name, const std::string& found, const std::string& expected) {
    return found == expected ? "" : std::string(name) + ": " + found + ", expected " + expected;
  };
  const auto count = [&](const char* name, std::uint64_t found, std::uint64_t expected) {
    return text(name, std::to_string(found), std::to_string(expected));
  };
  for (const std::string& each :
       {count("batch_size", state.batch_size, own.batch_size),
        count("world_size", state.world_size, own.world_size), count("echo", state.echo, own.echo),
        text("rank_remainder", state.rank_remainder, own.rank_remainder),
        text("drop_last", state.drop_last ? "true" : "false", own.drop_last ? "true" : "false")})
    if (!each.empty()) return each;
  return "";
}

/// Returns the batches as the loader that wrote the state divided them.
EpochBatches batches_of(const LoaderState& state, std::uint64_t epoch_samples) {
  const std::optional<RankRemainder> rank_remainder = enum_of<RankRemainder>(state.rank_remainder);
  if (!rank_remainder)
    refuse_state("rank_remainder: found \"" + state.rank_remainder + "\", expected pad or drop");
  const BatchSpec spec{.batch_size = state.batch_size,
                       .world_size = static_cast<std::uint32_t>(state.world_size),
                       .rank_remainder = *rank_remainder,
                       .drop_last = state.drop_last,
                       .echo = static_cast<std::uint32_t>(state.echo)};
  return {epoch_samples, spec, state.seed, state.epoch, state.first_position, nullptr, state.streams > 1};
}

/// Throws usage for a position that no loader can have written.
void check_position(const LoaderState& state, std::uint64_t epoch_samples) {
  const auto refuse = [](const char* name, std::uint64_t found, const std::string& expected) {
    refuse_state(std::string(name) + ": " + std::to_string(found) + ", expected " + expected);
  };
  if (state.epoch >= kMaxEpochs) refuse("epoch", state.epoch, "less than " + std::to_string(kMaxEpochs));
  if (state.first_position > epoch_samples)
    refuse("first_position", state.first_position, "at most " + std::to_string(epoch_samples));
  if (state.streams > kMaxStreams) refuse("streams", state.streams, "at most " + std::to_string(kMaxStreams));
  if (state.streams > 1 && state.shuffle == name_of(Shuffle::global))
    refuse("streams", state.streams, "none in order global");
  if (state.stream_unit == 0) refuse("stream_unit", 0, "at least 1");
  const EpochBatches batches = batches_of(state, epoch_samples);
  if (state.batches > batches.batch_count())
    refuse("batches", state.batches, "at most " + std::to_string(batches.batch_count()));
  const std::optional<std::uint64_t> expected = positions_done(batches, state);
  if (state.positions == expected) return;
  if (!state.positions) refuse_state("positions: is missing, expected " + std::to_string(*expected));
  refuse("positions", *state.positions, expected ? std::to_string(*expected) : "nothing");
}

}  // namespace

/// Positions are defined only at the end of a block of echoed batches: within it samples repeat.
std::optional<std::uint64_t> positions_done(const EpochBatches& batches, const LoaderState& state) {
  if (state.batches == 0) return state.first_position;
  const EpochBatches::Batch last = batches.batch(state.batches - 1);
  return last.ends_block ? std::optional(last.positions_done) : std::nullopt;
}

/// With equal batches the state's batch number is exact. With other batches (another batch_size or number of
/// ranks) the epoch continues at the first position that was not used. Its order is that of the streams that
/// it was begun with.
EpochStart start_of(const LoaderState& state, const LoaderState& own, std::uint64_t epoch_samples) {
  check_same_order(state, own);
  check_same_augment(state, own);
  check_position(state, epoch_samples);
  const std::string difference = difference_of_batches(state, own);
  const Streams streams{state.streams, state.stream_unit};
  if (difference.empty()) return {state.epoch, state.first_position, state.batches, streams};
  if (!state.positions) refuse_state(difference + " in the midst of a block of echoed batches");
  return {state.epoch, std::min(*state.positions, epoch_samples), 0, streams};
}

}  // namespace chunkhit
