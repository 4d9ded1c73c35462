#include "read/loader_stats.h"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <ostream>
#include <string>
#include <utility>

#include "base/resources.h"
#include "base/words.h"
#include "chunkhit/loader.h"
#include "types/enum_names.h"

namespace chunkhit {
namespace {

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

/// CPU time and voluntary context switches of the calling thread.
struct Usage {
  Usage() {
    rusage used{};
    ::getrusage(RUSAGE_THREAD, &used);
    cpu_seconds = seconds_of(used.ru_utime) + seconds_of(used.ru_stime);
    waits = used.ru_nvcsw;
  }
  double cpu_seconds;
  long waits;
};

}  // namespace

CopyClock::CopyClock() : begin_(std::chrono::steady_clock::now()) {
  const Usage usage;
  cpu_seconds_ = usage.cpu_seconds;
  waits_ = usage.waits;
}

void CopyClock::add_to(BatchCounts& counts) const {
  const Usage now;
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  const double cpu_seconds = now.cpu_seconds - cpu_seconds_;
  // A voluntary switch while copying means that a page was read from disk: time off the CPU counts as
  // fetching.
  const bool waited = now.waits != waits_ && cpu_seconds < seconds;
  const double page_seconds = waited ? seconds - cpu_seconds : 0;
  counts.page_seconds += page_seconds;
  counts.assemble_seconds += seconds - page_seconds;
}

namespace {

// The thresholds of TensorFlow's input-pipeline analyser.
constexpr double kNotInputBound = 0.05;
constexpr double kHighlyInputBound = 0.20;
/// In less time than this the first batches of an epoch, which no thread could prepare, decide.
constexpr double kEnoughSeconds = 1;

std::string percent(double share) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f %%", 100 * share);
  return text.data();
}

constexpr const char* kFirstEpoch =
    "reading all samples into memory takes longest, which the first epoch does for all: leave it out with "
    "reset_stats(), or keep them in their files (cache none)";

/// Names the stage that takes longest, if the threads are busy; otherwise what they wait for.
std::string advice(const LoaderStats& stats) {
  const bool decoded = stats.cache == Cache::decoded;
  const bool can_take_more = stats.threads < cpu_share() && stats.tuning.empty();
  const std::string more = can_take_more ? "give more threads" : "give more CPUs";
  const std::array<std::pair<double, std::string>, 3> stages{{
      {stats.fetch_seconds,
       decoded ? kFirstEpoch
               : "reading stored bytes takes longest: keep them in memory (cache compressed or decoded, more "
                 "cache_bytes), use faster storage, or echo batches (echo = 2)"},
      {stats.decode_seconds,
       decoded ? kFirstEpoch
               : "decompressing takes longest: keep samples decoded (cache decoded, more cache_bytes), " +
                     more + ", or pack with a faster codec (images of their own sizes: max_side, store raw)"},
      {stats.assemble_seconds, "copying and converting takes longest: " + more +
                                   ", or ask for smaller batches (of images as uint8, of matrices as CSR) "
                                   "and convert them on the GPU"},
  }};
  const auto worst = std::max_element(stages.begin(), stages.end(),
                                      [](const auto& a, const auto& b) { return a.first < b.first; });
  const double available = stats.seconds * stats.threads;
  const double busy = stats.fetch_seconds + stats.decode_seconds + stats.assemble_seconds;
  if (busy >= 0.5 * available) return worst->second;
  // Idle threads have made all batches that they may; those that are neither idle nor busy wait themselves.
  if (stats.idle_seconds >= 0.5 * (available - busy)) {
    std::array<char, 96> times{};
    std::snprintf(times.data(), times.size(), "busy for %.3f s and idle for %.3f s of their %.3f s", busy,
                  stats.idle_seconds, available);
    return std::string("the threads keep up on average (") + times.data() +
           "), so that only some batches came late, such as the first of an epoch or those after short "
           "steps: raise prefetch, or leave the threads a CPU that training does not take";
  }
  return "the threads waited for one another or for a CPU: pack smaller chunks, give more cache_bytes, or "
         "leave them a CPU that training does not take";
}

/// Names how long the transform took, and what makes it faster.
std::string transform_advice(const LoaderStats& stats) {
  std::array<char, 96> seconds{};
  std::snprintf(seconds.data(), seconds.size(), "%.3f s, %.3f ms a batch; %.3f s of waiting for the loader",
                stats.transform_seconds, 1e3 * stats.transform_seconds / static_cast<double>(stats.batches),
                stats.transform_wait_seconds);
  const std::string begin = std::string("the transform takes longest (") + seconds.data() +
                            "): if it loops over images, let tensor operations change the whole batch; leave "
                            "flips and crops to augment, move it to the GPU (device=\"cuda\"), or ";
  return begin + (stats.transform_ahead == 0 ? "run it ahead of training on a thread (transform_ahead=2)"
                                             : "leave its thread a CPU that training does not take");
}

}  // namespace

LoaderStats LoaderStats::since(const LoaderStats& earlier) const {
  LoaderStats since = *this;
  if (earlier.batches > batches || earlier.seconds > seconds) return since;
  for (double LoaderStats::*const each :
       {&LoaderStats::seconds, &LoaderStats::wait_seconds, &LoaderStats::step_seconds,
        &LoaderStats::fetch_seconds, &LoaderStats::decode_seconds, &LoaderStats::assemble_seconds,
        &LoaderStats::idle_seconds, &LoaderStats::transform_seconds, &LoaderStats::transform_wait_seconds})
    since.*each -= earlier.*each;
  for (std::uint64_t LoaderStats::*const each :
       {&LoaderStats::batches, &LoaderStats::samples, &LoaderStats::batch_bytes, &LoaderStats::stored_bytes,
        &LoaderStats::chunk_hits, &LoaderStats::chunk_misses, &LoaderStats::chunk_fetches,
        &LoaderStats::shared_chunks, &LoaderStats::corrupt_chunks, &LoaderStats::corrupt_samples,
        &LoaderStats::remote_bytes, &LoaderStats::disk_chunks, &LoaderStats::retained_batches,
        &LoaderStats::decoded_images})
    since.*each -= earlier.*each;
  return since;
}

std::string LoaderStats::verdict() const {
  if (batches == 0 && corrupt_samples > 0)
    return "no batch: all " + count_text(corrupt_samples, "sample") + " were left out as damaged";
  if (batches == 0) return "no batch was asked for yet";
  const double share = wait_fraction();
  const std::string waited = "training waited " + percent(share) + " of the time for data";
  std::string lacking;
  if (corrupt_samples > 0)
    lacking.append("; ")
        .append(count_text(corrupt_samples, "sample"))
        .append(" of damaged chunks ")
        .append(corrupt_samples == 1 ? "was" : "were")
        .append(" left out");
  if (!tuning.empty()) lacking += "; tuning: " + tuning.back();
  if (seconds < kEnoughSeconds) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.3f s", seconds);
    return std::string("no verdict before a second of data: in ") + text.data() + " " + waited + lacking;
  }
  if (share < kNotInputBound) return "not input-bound: " + waited + lacking;
  return (share < kHighlyInputBound ? "input-bound: " : "highly input-bound: ") + waited + "; " +
         (transform_seconds > transform_wait_seconds ? transform_advice(*this) : advice(*this)) + lacking;
}

std::ostream& operator<<(std::ostream& out, const LoaderStats& stats) {
  std::array<char, 512> text{};
  std::snprintf(
      text.data(), text.size(),
      "%s, %s in %.3f s (%.0f samples/s, %.2f GB/s); %s, %s, prefetch %u\n"
      "caller: waited %.3f s, busy %.3f s; threads: fetch %.3f s, decode %.3f s, assemble %.3f s, idle %.3f "
      "s\n"
      "chunks: %s, %s, %s, %.1f MB fetched, %llu from other processes; left out: %s, %s\n",
      count_text(stats.batches, "batch").c_str(), count_text(stats.samples, "sample").c_str(), stats.seconds,
      stats.seconds > 0 ? static_cast<double>(stats.samples) / stats.seconds : 0,
      stats.seconds > 0 ? static_cast<double>(stats.batch_bytes) / stats.seconds / 1e9 : 0,
      name_of(stats.cache).c_str(), count_text(stats.threads, "thread").c_str(), stats.prefetch,
      stats.wait_seconds, stats.step_seconds, stats.fetch_seconds, stats.decode_seconds,
      stats.assemble_seconds, stats.idle_seconds, count_text(stats.chunk_hits, "hit").c_str(),
      count_text(stats.chunk_misses, "miss").c_str(), count_text(stats.chunk_fetches, "fetch").c_str(),
      static_cast<double>(stats.stored_bytes) / 1e6, static_cast<unsigned long long>(stats.shared_chunks),
      count_text(stats.corrupt_chunks, "chunk").c_str(), count_text(stats.corrupt_samples, "sample").c_str());
  out << text.data();
  if (stats.transform_seconds > 0) {
    std::snprintf(text.data(), text.size(),
                  "transform: busy %.3f s, waited for the loader %.3f s; %u ahead\n", stats.transform_seconds,
                  stats.transform_wait_seconds, stats.transform_ahead);
    out << text.data();
  }
  out << stats.verdict() << '\n';
  for (const std::string& each : stats.tuning) out << "tuning: " << each << '\n';
  for (const std::string& notice : stats.notices) out << "note: " << notice << '\n';
  return out;
}

}  // namespace chunkhit
