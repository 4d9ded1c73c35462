#include <unistd.h>

#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "base/cpu.h"
#include "cache/chunk_cache.h"
#include "chunkhit/reader.h"
#include "manifest/loader_state.h"
#include "read/batch_pipeline.h"
#include "read/image_source.h"
#include "read/residency.h"

namespace chunkhit {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::array<std::string_view, 3> kShuffleNames{"none", "window", "global"};
constexpr std::array<std::string_view, 2> kUnevenNames{"pad", "drop"};

void require(bool holds, const char* what) {
  if (!holds) throw Error(ErrorCode::usage, what);
}

ImageLoaderOptions checked(ImageLoaderOptions options) {
  require(options.batch_size >= 1, "batch_size: must be at least 1");
  require(options.batch_size <= UINT32_MAX, "batch_size: must be less than 2^32");
  require(options.window_chunks >= 1, "window_chunks: must be at least 1");
  require(options.world_size >= 1, "world_size: must be at least 1");
  require(options.rank < options.world_size, "rank: must be less than world_size");
  require(options.echo >= 1, "echo: must be at least 1");
  require(options.prefetch >= 1, "prefetch: must be at least 1");
  require(!options.allocator.allocate == !options.allocator.release,
          "allocator: must have both functions, or none");
  if (options.threads == 0) options.threads = allowed_cpus();
  return options;
}

BatchSpec batch_spec(const ImageLoaderOptions& options) {
  return {options.batch_size, options.rank,      options.world_size,
          options.uneven,     options.drop_last, options.echo};
}

std::vector<float> as_shares(const std::vector<double>& of_255) {
  std::vector<float> shares;
  shares.reserve(of_255.size());
  for (const double value : of_255) shares.push_back(static_cast<float>(value / 255));
  return shares;
}

SampleFormat sample_format(const ImageLoaderOptions& options, const ImageSource& source) {
  SampleFormat format{source.chunks().sample(), options.augment, options.as,
                      options.layout.value_or(source.chunks().sample().layout), options.normalize};
  if (format.normalize.mean.empty()) format.normalize.mean = as_shares(source.info().mean);
  if (format.normalize.std.empty()) format.normalize.std = as_shares(source.info().std);
  return format;
}

/// The chunks that a batch may need at a time.
std::uint64_t chunks_needed(const ImageLoaderOptions& options, const ChunkGrid& grid) {
  if (options.shuffle == Shuffle::global) return options.threads;
  const std::uint64_t places = std::uint64_t{options.batch_size} * options.world_size * options.echo /
                               std::max<std::uint64_t>(1, grid.chunk_samples());
  const std::uint64_t window = options.shuffle == Shuffle::window ? options.window_chunks : 1;
  return std::min(grid.chunk_count(), (places + window) / window * window + window);
}

}  // namespace

struct ImageLoader::Impl {
  Impl(const std::vector<std::string>& paths, ImageLoaderOptions given)
      : options(checked(std::move(given))),
        source(paths, {options.images, options.labels}),
        grid(source.chunks().sample_counts()),
        writer(sample_format(options, source)),
        plan(plan_residency(source.chunks(), {.residency = options.residency,
                                              .memory_bytes = options.memory_bytes,
                                              .chunks_needed = chunks_needed(options, grid),
                                              .in_order = options.shuffle != Shuffle::global})),
        cache(source.chunks(), {plan.residency, options.check_hashes, options.on_corrupt, plan.idle_chunks}) {
    require(batches(0).batch_count() > 0,
            "batch_size: no batch is left of so few samples (uneven, drop_last)");
  }

  [[nodiscard]] OrderSpec order() const { return {options.shuffle, options.seed, options.window_chunks}; }
  [[nodiscard]] EpochBatches batches(std::uint64_t epoch, std::uint64_t first_place = 0) const {
    return {source.size(), batch_spec(options), options.seed, epoch, first_place};
  }
  void require_own_process() const {
    if (::getpid() != process)
      throw Error(ErrorCode::usage,
                  "this loader was made before the process was forked; make one in each child");
  }
  void begin(const EpochStart& start) {
    keep_counts();
    pipeline.reset();
    pipeline = std::make_unique<BatchPipeline>(
        source, grid, cache, writer, options.allocator,
        PipelineSpec{order(), batch_spec(options), options.threads, options.prefetch,
                     options.shuffle != Shuffle::global, plan.chunks_ahead},
        start);
  }
  /// Statistics outlive a pipeline.
  void keep_counts();
  [[nodiscard]] LoaderState state() const;
  [[nodiscard]] EpochStart start_of(const LoaderState& state) const;

  ImageLoaderOptions options;
  ImageSource source;
  ChunkGrid grid;
  SampleWriter writer;
  ResidencyPlan plan;
  ChunkCache cache;
  std::unique_ptr<BatchPipeline> pipeline;
  std::optional<EpochStart> restored;  ///< where the next epoch() goes on
  bool at_end = false;                 ///< of the epoch that was begun last
  PipelineStats before;                ///< of pipelines that are gone
  std::optional<Clock::time_point> first_request;
  Clock::time_point last_answer;
  pid_t process = ::getpid();
};

void ImageLoader::Impl::keep_counts() {
  if (!pipeline) return;
  before.add(pipeline->stats());
}

LoaderState ImageLoader::Impl::state() const {
  LoaderState state;
  state.source = source.chunks().id();
  state.shuffle = kShuffleNames[static_cast<std::size_t>(options.shuffle)];
  state.seed = options.seed;
  state.window_chunks = options.window_chunks;
  state.batch_size = options.batch_size;
  state.world_size = options.world_size;
  state.echo = options.echo;
  state.uneven = kUnevenNames[static_cast<std::size_t>(options.uneven)];
  state.drop_last = options.drop_last;
  const bool runs = pipeline && !restored;
  const EpochStart start = runs ? pipeline->start() : restored.value_or(EpochStart{});
  state.epoch = start.epoch;
  state.first_place = start.first_place;
  state.batches = runs ? pipeline->next_batch() : start.first_batch;
  if (state.batches == 0) {
    state.places = start.first_place;
  } else {
    const EpochBatches::Batch last = batches(start.epoch, start.first_place).batch(state.batches - 1);
    if (last.ends_block) state.places = last.places_done;
  }
  return state;
}

EpochStart ImageLoader::Impl::start_of(const LoaderState& state) const {
  const LoaderState own = this->state();
  const auto refuse = [](const std::string& what) { throw Error(ErrorCode::usage, "loader state: " + what); };
  if (state.source != own.source) refuse("belongs to another source");
  if (state.shuffle != own.shuffle) refuse("shuffle: " + state.shuffle + ", expected " + own.shuffle);
  if (state.seed != own.seed)
    refuse("seed: " + std::to_string(state.seed) + ", expected " + std::to_string(own.seed));
  if (state.window_chunks != own.window_chunks && options.shuffle == Shuffle::window)
    refuse("window_chunks: " + std::to_string(state.window_chunks) + ", expected " +
           std::to_string(own.window_chunks));
  if (state.first_place > source.size() || state.places.value_or(0) > source.size() + state.world_size)
    refuse("lies behind the last sample");
  if (state.batch_size == own.batch_size && state.world_size == own.world_size && state.echo == own.echo &&
      state.uneven == own.uneven && state.drop_last == own.drop_last) {
    if (state.batches > batches(state.epoch, state.first_place).batch_count())
      refuse("lies behind the last batch");
    return {state.epoch, state.first_place, state.batches};
  }
  if (!state.places)
    refuse(
        "other batch_size, world_size, echo, uneven or drop_last can only go on where a block of echoed "
        "batches ends");
  return {state.epoch, std::min(*state.places, source.size()), 0};
}

ImageLoader::ImageLoader(const std::string& path, ImageLoaderOptions options)
    : ImageLoader(std::vector{path}, std::move(options)) {}

ImageLoader::ImageLoader(const std::vector<std::string>& paths, ImageLoaderOptions options)
    : impl_(std::make_unique<Impl>(paths, std::move(options))) {}

ImageLoader::ImageLoader(ImageLoader&&) noexcept = default;
ImageLoader& ImageLoader::operator=(ImageLoader&&) noexcept = default;

ImageLoader::~ImageLoader() {
  // The threads of a loader are not in a forked child: there is nothing to wait for, and nothing that may be
  // freed.
  if (impl_ && impl_->process != ::getpid()) static_cast<void>(impl_.release());
}

ImageLoader::Epoch ImageLoader::epoch(std::uint64_t epoch) {
  impl_->require_own_process();
  const EpochStart start =
      impl_->restored && impl_->restored->epoch == epoch ? *impl_->restored : EpochStart{epoch, 0, 0};
  const bool is_there = impl_->pipeline && !impl_->restored && impl_->pipeline->epoch() == epoch &&
                        impl_->pipeline->start().first_place == 0 && impl_->pipeline->next_batch() == 0;
  if (!is_there) impl_->begin(start);
  impl_->restored.reset();
  impl_->at_end = false;
  return Epoch(*this);
}

const ImageBatch* ImageLoader::next() {
  impl_->require_own_process();
  if (!impl_->pipeline || impl_->restored)
    static_cast<void>(epoch(impl_->restored ? impl_->restored->epoch : 0));
  if (impl_->at_end) return nullptr;
  if (!impl_->first_request) impl_->first_request = Clock::now();
  const ImageBatch* const batch = impl_->pipeline->next();
  impl_->last_answer = Clock::now();
  impl_->at_end = batch == nullptr;
  return batch;
}

std::uint64_t ImageLoader::size() const { return impl_->source.size(); }
std::uint64_t ImageLoader::batch_count() const { return impl_->batches(0).batch_count(); }
const PackInfo& ImageLoader::info() const { return impl_->source.info(); }
MixingInfo ImageLoader::mixing() const { return mixing_of(impl_->grid, impl_->order()); }

BatchShape ImageLoader::batch_shape() const {
  BatchShape shape = impl_->writer.shape();
  shape.batch = impl_->options.batch_size;
  return shape;
}

LoaderStats ImageLoader::stats() const {
  PipelineStats pipeline = impl_->before;
  if (impl_->pipeline) pipeline.add(impl_->pipeline->stats());
  const ChunkCacheStats cache = impl_->cache.stats();
  LoaderStats stats;
  if (impl_->first_request)
    stats.seconds = std::chrono::duration<double>(impl_->last_answer - *impl_->first_request).count();
  stats.wait_seconds = pipeline.wait_seconds;
  stats.step_seconds = pipeline.step_seconds;
  stats.fetch_seconds = cache.fetch_seconds;
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
  stats.residency = impl_->plan.residency;
  stats.threads = impl_->options.threads;
  return stats;
}

void ImageLoader::reset_stats() {
  impl_->before = {};
  if (impl_->pipeline) impl_->pipeline->reset_stats();
  impl_->cache.reset_stats();
  impl_->first_request.reset();
}

std::string ImageLoader::state() const { return loader_state_text(impl_->state()); }

void ImageLoader::restore(const std::string& state) {
  impl_->require_own_process();
  impl_->restored = impl_->start_of(parse_loader_state(state));
}

}  // namespace chunkhit
