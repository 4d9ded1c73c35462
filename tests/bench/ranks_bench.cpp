// What processes that share an epoch pay together, beside one: chunks that are fetched, bytes that are read,
// CPU seconds, memory that is theirs, and how long the last one waits for its first batch. usage: ranks_bench
// PACK [EPOCHS [STREAMS]]; batches of 64, 1 to 8 ranks, in window order without a cache and in global order
// decoded. Figures of epochs are means over EPOCHS (3). Memory is the proportional share of what is resident,
// when all have had their epochs. STREAMS 1 gives the order of one stream, in which each rank visits every
// chunk.
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "bench_clock.h"
#include "chunkhit/image_loader.h"
#include "loader_cases.h"
#include "own_process.h"

namespace chunkhit {
namespace {

struct Paid {
  std::uint64_t fetches = 0;
  std::uint64_t stored_bytes = 0;
  std::uint64_t memory_bytes = 0;
  double cpu_seconds = 0;
  double first_batch_seconds = 0;
};

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

std::uint64_t proportional_bytes() {
  std::ifstream rollup("/proc/self/smaps_rollup");
  for (std::string line; std::getline(rollup, line);)
    if (line.starts_with("Pss:")) return std::stoull(line.substr(4)) * 1024;
  return 0;
}

/// Where processes wait for each other.
class Barrier {
 public:
  explicit Barrier(std::size_t count) : count_(count) {
    void* const memory =
        ::mmap(nullptr, sizeof *arrived_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("no shared memory");
    arrived_ = new (memory) std::atomic<std::size_t>(0);
  }
  void wait() const {
    for (const std::size_t turn = arrived_->fetch_add(1) / count_ + 1; *arrived_ < turn * count_;)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

 private:
  std::size_t count_;
  std::atomic<std::size_t>* arrived_;
};

Paid read_epochs(const std::string& pack, const ImageLoaderOptions& options, std::uint64_t epochs,
                 const Barrier& barrier) {
  barrier.wait();
  Paid paid;
  const double begin = cpu_seconds();
  const auto start = std::chrono::steady_clock::now();
  ImageLoader loader(pack, options);
  bool is_first = true;
  for (std::uint64_t epoch = 0; epoch < epochs; ++epoch)
    for ([[maybe_unused]] const ImageBatch& batch : loader.epoch(epoch))
      if (std::exchange(is_first, false))
        paid.first_batch_seconds =
            std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  paid.cpu_seconds = cpu_seconds() - begin;
  const LoaderStats stats = loader.stats();
  paid.fetches = stats.chunk_fetches;
  paid.stored_bytes = stats.stored_bytes;
  barrier.wait();
  paid.memory_bytes = proportional_bytes();
  barrier.wait();
  return paid;
}

void print_ranks(const std::string& pack, Shuffle order, Cache cache, std::uint32_t ranks,
                 std::uint64_t epochs, std::uint32_t streams) {
  const Barrier barrier(ranks);
  const AugmentSpec augment = bench_augment(read_pack_info(pack));
  const std::vector<Paid> each = in_own_processes(ranks, [&](std::size_t rank) {
    return read_epochs(pack,
                       {.batch_size = 64,
                        .shuffle = order,
                        .rank = static_cast<std::uint32_t>(rank),
                        .world_size = ranks,
                        .streams = streams,
                        .augment = augment,
                        .cache = cache,
                        .threads = 1},
                       epochs, barrier);
  });
  Paid all;
  for (const Paid& paid : each) {
    all.fetches += paid.fetches;
    all.stored_bytes += paid.stored_bytes;
    all.memory_bytes += paid.memory_bytes;
    all.cpu_seconds += paid.cpu_seconds;
    all.first_batch_seconds = std::max(all.first_batch_seconds, paid.first_batch_seconds);
  }
  const double epochs_read = order == Shuffle::global ? 1 : static_cast<double>(epochs);
  std::printf(
      "%-16s %u rank%s %7.0f fetches  %8.1f MB read  %6.2f CPU s  %7.1f MB held  first batch %6.1f ms\n",
      case_name(order, cache).c_str(), ranks,
      ranks == 1 ? ": " : "s:", static_cast<double>(all.fetches) / epochs_read,
      1e-6 * static_cast<double>(all.stored_bytes) / epochs_read,
      all.cpu_seconds / static_cast<double>(epochs), 1e-6 * static_cast<double>(all.memory_bytes),
      1e3 * all.first_batch_seconds);
}

}  // namespace
}  // namespace chunkhit

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const std::uint64_t epochs = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 3;
  const auto streams = static_cast<std::uint32_t>(argc > 3 ? std::atoi(argv[3]) : 0);
  for (const std::uint32_t ranks : {1, 2, 4, 8})
    chunkhit::print_ranks(argv[1], chunkhit::Shuffle::window, chunkhit::Cache::none, ranks, epochs, streams);
  for (const std::uint32_t ranks : {1, 2, 4, 8})
    chunkhit::print_ranks(argv[1], chunkhit::Shuffle::global, chunkhit::Cache::decoded, ranks, epochs,
                          streams);
}
