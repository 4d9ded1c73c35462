// The reader's memory beside what it may take: cache_bytes and its ring of batches; the aim is 1.10 of their
// sum at most. usage: reader_memory_bench PACK [BUDGET_MIB [THREADS]]; two epochs, or 20 s, of each case in a
// process of its own. The budget (256 MiB) is that of stream; of compressed beside the stored bytes; of
// decoded the raw bytes are. A peak is the process's own memory, with the program, the index and the labels.
// Mapped files are told beside it: these pages are the page cache's, which takes them back.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <stop_token>
#include <string>
#include <thread>

#include "base/resources.h"
#include "bench_clock.h"
#include "chunkhit/image_loader.h"
#include "loader_cases.h"
#include "own_process.h"

namespace chunkhit {
namespace {

constexpr double kMib = 1 << 20;
/// A global order that decompresses a chunk for each sample is at its peak long before.
constexpr std::chrono::seconds kMaxTime{20};

struct Memory {
  std::uint64_t own_bytes = 0;
  std::uint64_t file_bytes = 0;  ///< of mapped files
};

Memory memory_now() {
  Memory now;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssAnon:")) now.own_bytes = std::stoull(line.substr(8)) * 1024;
    if (line.starts_with("RssFile:")) now.file_bytes = std::stoull(line.substr(8)) * 1024;
  }
  return now;
}

/// Looks every millisecond; the kernel keeps a peak of both kinds together only.
class PeakWatch {
 public:
  PeakWatch() = default;
  Memory finish() {
    thread_.request_stop();
    thread_.join();
    look();
    return peak_;
  }

 private:
  void look() {
    const Memory now = memory_now();
    peak_ = {std::max(peak_.own_bytes, now.own_bytes), std::max(peak_.file_bytes, now.file_bytes)};
  }
  Memory peak_;
  std::jthread thread_{[this](const std::stop_token& stop) {
    for (; !stop.stop_requested(); std::this_thread::sleep_for(std::chrono::milliseconds(1))) look();
  }};
};

struct Allowance {
  std::uint64_t cache_bytes = 0;
  std::uint64_t ring_bytes = 0;
};

/// Of images of their own sizes, decoded is as many as fit into the budget beside the stored bytes.
Allowance allowance(const PackInfo& info, Cache cache, std::uint64_t budget_bytes, std::uint32_t threads) {
  const ImageLoaderOptions defaults;
  const ResizedCropSpec crop = bench_augment(info).resized_crop;
  if (info.images().own_sizes) {
    const std::uint64_t sample = std::uint64_t{crop.height} * crop.width * info.images().channels;
    return {budget_bytes + (cache == Cache::none ? 0 : info.stored_bytes),
            (1 + std::uint64_t{defaults.prefetch}) * kBenchBatch * sample};
  }
  const std::uint64_t buffers = 1 + std::max(defaults.prefetch, threads);
  Allowance allowed{budget_bytes, buffers * kBenchBatch * (info.raw_bytes / info.samples)};
  if (cache == Cache::decoded)
    allowed.cache_bytes = info.raw_bytes + std::uint64_t{2} * threads * info.images().chunk_bytes;
  if (cache == Cache::compressed) allowed.cache_bytes += info.stored_bytes;
  return allowed;
}

Memory run_epochs(const std::string& pack, const ImageLoaderOptions& options) {
  PeakWatch watch;
  ImageLoader loader(pack, options);
  const auto end = std::chrono::steady_clock::now() + kMaxTime;
  for (std::uint64_t epoch = 0; epoch < 2; ++epoch)
    for ([[maybe_unused]] const ImageBatch& batch : loader.epoch(epoch))
      if (std::chrono::steady_clock::now() > end) break;
  return watch.finish();
}

void print_memory(const std::string& pack, Shuffle order, Cache cache, std::uint64_t budget_bytes,
                  std::uint32_t threads) {
  const PackInfo info = read_pack_info(pack);
  const Allowance allowed = allowance(info, cache, budget_bytes, threads);
  const bool keeps_some = info.images().own_sizes && cache == Cache::decoded;
  const Memory peak = in_own_process([&] {
    return run_epochs(pack, {.batch_size = kBenchBatch,
                             .shuffle = order,
                             .augment = bench_augment(info),
                             .cache = keeps_some ? Cache::automatic : cache,
                             .cache_bytes = allowed.cache_bytes,
                             .threads = threads});
  });
  const auto mib = [](std::uint64_t bytes) { return static_cast<double>(bytes) / kMib; };
  std::printf("%-20s peak %7.1f MiB  %.2f of cache_bytes %.1f + ring %.1f MiB  (mapped files %.1f MiB)\n",
              case_name(order, cache).c_str(), mib(peak.own_bytes),
              mib(peak.own_bytes) / mib(allowed.cache_bytes + allowed.ring_bytes), mib(allowed.cache_bytes),
              mib(allowed.ring_bytes), mib(peak.file_bytes));
}

}  // namespace
}  // namespace chunkhit

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const std::uint32_t threads =
      argc > 3 ? static_cast<std::uint32_t>(std::atoi(argv[3])) : chunkhit::allowed_cpus();
  const std::uint64_t budget_bytes = (argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 256) << 20;
  for (const chunkhit::Shuffle order : chunkhit::kOrders)
    for (const chunkhit::Cache cache : chunkhit::kResidencies) try {
        chunkhit::print_memory(argv[1], order, cache, budget_bytes, threads);
      } catch (const std::exception& error) {
        std::printf("%-20s %s\n", chunkhit::case_name(order, cache).c_str(), error.what());
      }
}
