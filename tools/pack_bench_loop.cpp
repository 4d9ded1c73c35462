#include "pack_bench_loop.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <thread>

#include "kernel_memory.h"

namespace chunkhit {
namespace {

double of_its_seconds(double amount, const EpochTimes& times) {
  return times.seconds > 0 ? amount / times.seconds : 0;
}

}  // namespace

EpochTimes sum_of(const std::vector<EpochTimes>& epochs) {
  EpochTimes sum;
  if (!epochs.empty()) sum.first_batch_seconds = epochs.front().first_batch_seconds;
  for (const EpochTimes& epoch : epochs) {
    sum.samples += epoch.samples;
    sum.ratings += epoch.ratings;
    sum.bytes += epoch.bytes;
    sum.seconds += epoch.seconds;
    sum.wait_seconds += epoch.wait_seconds;
    sum.step_seconds += epoch.step_seconds;
    sum.batch_seconds.insert(sum.batch_seconds.end(), epoch.batch_seconds.begin(), epoch.batch_seconds.end());
  }
  return sum;
}

double samples_per_second(const EpochTimes& times) {
  return of_its_seconds(static_cast<double>(times.samples), times);
}

double ratings_per_second(const EpochTimes& times) {
  return of_its_seconds(static_cast<double>(times.ratings), times);
}

double bytes_per_second(const EpochTimes& times) {
  return of_its_seconds(static_cast<double>(times.bytes), times);
}

double wait_fraction(const EpochTimes& times) { return of_its_seconds(times.wait_seconds, times); }

double utilization(const EpochTimes& times) { return of_its_seconds(times.step_seconds, times); }

double batch_seconds_median(const EpochTimes& times) {
  std::vector<double> seconds = times.batch_seconds;
  if (seconds.empty()) return 0;
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return *middle;
}

namespace {

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

/// Adds what `more` counted; its cache is the same, and so are its threads where they are not automatic.
void add_stats(LoaderStats& sum, const LoaderStats& more) {
  for (const auto field : {&LoaderStats::seconds, &LoaderStats::wait_seconds, &LoaderStats::step_seconds,
                           &LoaderStats::fetch_seconds, &LoaderStats::decode_seconds,
                           &LoaderStats::assemble_seconds, &LoaderStats::idle_seconds})
    sum.*field += more.*field;
  for (const auto field :
       {&LoaderStats::batches, &LoaderStats::samples, &LoaderStats::batch_bytes, &LoaderStats::stored_bytes,
        &LoaderStats::chunk_hits, &LoaderStats::chunk_misses, &LoaderStats::chunk_fetches,
        &LoaderStats::shared_chunks, &LoaderStats::corrupt_chunks, &LoaderStats::corrupt_samples,
        &LoaderStats::remote_bytes, &LoaderStats::disk_chunks})
    sum.*field += more.*field;
}

std::variant<ImageLoader, SparseLoader> open_loader(const BenchSpec& spec) {
  if (const auto* matrices = std::get_if<SparseLoaderOptions>(&spec.loader))
    return SparseLoader(spec.paths, *matrices);
  return ImageLoader(spec.paths, std::get<ImageLoaderOptions>(spec.loader));
}

std::uint64_t sample_count(const ImageBatch& batch) { return batch.samples.size(); }
std::uint64_t sample_count(const SparseBatch& batch) { return batch.rows.size(); }

std::uint64_t rating_count(const ImageBatch&) { return 0; }
std::uint64_t rating_count(const SparseBatch& batch) { return batch.nnz() + batch.held_out.nnz(); }

}  // namespace

void BenchLoop::close() {
  if (!loader_) return;
  closed_ = stats();
  loader_.reset();
}

LoaderStats BenchLoop::stats() const {
  if (!loader_) return closed_.value_or(LoaderStats{});
  LoaderStats sum = std::visit([](const auto& loader) { return loader.stats(); }, *loader_);
  if (closed_) add_stats(sum, *closed_);
  return sum;
}

std::uint64_t BenchLoop::batch_count() const {
  return std::visit([](const auto& loader) { return loader.batch_count(); }, loader_.value());
}

MixingInfo BenchLoop::mixing() const {
  return std::visit([](const auto& loader) { return loader.mixing(); }, loader_.value());
}

EpochTimes BenchLoop::run_epoch(const GoOn& go_on) {
  if (spec_.cold) {
    close();
    std::uint64_t stayed = 0;
    for (const std::string& path : spec_.paths) stayed += drop_from_page_cache(path);
    cached_bytes_ = std::max(cached_bytes_, stayed);
  }
  const Clock::time_point opened = Clock::now();
  if (!loader_) loader_.emplace(open_loader(spec_));
  const double open_seconds = seconds_between(opened, Clock::now());
  EpochTimes times = std::visit([&](auto& loader) { return time_epoch(loader, go_on); }, *loader_);
  times.first_batch_seconds += open_seconds;
  return times;
}

template <class Loader>
EpochTimes BenchLoop::time_epoch(Loader& loader, const GoOn& go_on) {
  const Clock::time_point entered = Clock::now();
  EpochTimes times;
  const LoaderStats before = loader.stats();
  times.batch_seconds.reserve(loader.batch_count());
  const typename Loader::Epoch batches = loader.epoch(epoch_++);
  const Clock::time_point begin = Clock::now();
  Clock::time_point last = begin;
  for (const auto& batch : batches) {
    const Clock::time_point now = Clock::now();
    if (times.batch_seconds.empty()) times.first_batch_seconds = seconds_between(entered, now);
    times.batch_seconds.push_back(seconds_between(last, now));
    last = now;
    times.samples += sample_count(batch);
    times.ratings += rating_count(batch);
    if (spec_.step_seconds > 0) {
      std::this_thread::sleep_for(std::chrono::duration<double>(spec_.step_seconds));
      times.step_seconds += seconds_between(now, Clock::now());
    }
    if (go_on && !go_on(times.samples, seconds_between(begin, now))) break;
  }
  times.seconds = seconds_between(begin, Clock::now());
  const LoaderStats after = loader.stats();
  times.bytes = after.batch_bytes - before.batch_bytes;
  times.wait_seconds = after.wait_seconds - before.wait_seconds;
  return times;
}

}  // namespace chunkhit
