#include "pack_bench_loop.h"

#include <chrono>
#include <thread>
#include <utility>

#include "kernel_memory.h"

namespace chunkhit {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

/// Adds what `more` counted; its residency and threads are the same.
void add_stats(LoaderStats& sum, const LoaderStats& more) {
  for (const auto field : {&LoaderStats::seconds, &LoaderStats::wait_seconds, &LoaderStats::step_seconds,
                           &LoaderStats::fetch_seconds, &LoaderStats::decode_seconds,
                           &LoaderStats::assemble_seconds, &LoaderStats::idle_seconds})
    sum.*field += more.*field;
  for (const auto field :
       {&LoaderStats::batches, &LoaderStats::samples, &LoaderStats::batch_bytes, &LoaderStats::stored_bytes,
        &LoaderStats::chunk_hits, &LoaderStats::chunk_misses, &LoaderStats::chunk_fetches,
        &LoaderStats::corrupt_chunks, &LoaderStats::corrupt_samples})
    sum.*field += more.*field;
}

}  // namespace

void BenchLoop::close() {
  if (!loader_) return;
  closed_ = stats();
  loader_.reset();
}

LoaderStats BenchLoop::stats() const {
  if (!loader_) return closed_.value_or(LoaderStats{});
  LoaderStats sum = loader_->stats();
  if (closed_) add_stats(sum, *closed_);
  return sum;
}

EpochTimes BenchLoop::run_epoch(const GoOn& go_on) {
  if (spec_.cold) {
    close();  // what is mapped stays in the page cache
    for (const std::string& path : spec_.paths) drop_from_page_cache(path);
  }
  const Clock::time_point opened = Clock::now();
  if (!loader_) loader_.emplace(spec_.paths, spec_.loader);
  EpochTimes times;
  const double waited_before = loader_->stats().wait_seconds;
  times.batch_seconds.reserve(loader_->batch_count());
  const ImageLoader::Epoch batches = loader_->epoch(epoch_++);
  const Clock::time_point begin = Clock::now();
  Clock::time_point last = begin;
  for (const ImageBatch& batch : batches) {
    const Clock::time_point now = Clock::now();
    if (times.batch_seconds.empty()) times.first_batch_seconds = seconds_between(opened, now);
    times.batch_seconds.push_back(seconds_between(last, now));
    last = now;
    times.samples += batch.samples.size();
    times.bytes += batch.pixels.size_bytes() + batch.values.size_bytes();
    if (spec_.step_seconds > 0) {
      std::this_thread::sleep_for(std::chrono::duration<double>(spec_.step_seconds));
      times.step_seconds += seconds_between(now, Clock::now());
    }
    if (go_on && !go_on(times.samples, seconds_between(begin, now))) break;
  }
  times.seconds = seconds_between(begin, Clock::now());
  times.wait_seconds = loader_->stats().wait_seconds - waited_before;
  return times;
}

}  // namespace chunkhit
