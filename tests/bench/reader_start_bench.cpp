// Time from the loader's constructor to its first batch, each in a new process, page cache warm; the aim is
// 50 ms for a pack of 1,000 chunks. usage: reader_start_bench PACK [ROUNDS]; prints medians of ROUNDS (5). A
// pack of 1,000 chunks: pack-images --chunk-samples. Beside it the CPU time of all threads, which other
// programs hardly change, and the chunks that were loaded: a first batch needs all of a window, or in a
// global order up to one for each sample.
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "bench_clock.h"
#include "chunkhit/image_loader.h"
#include "loader_cases.h"
#include "own_process.h"

namespace chunkhit {
namespace {

constexpr double kAimSeconds = 0.050;

struct Start {
  double open_seconds = 0;         ///< of the constructor
  double first_batch_seconds = 0;  ///< of the constructor and the first batch
  double cpu_seconds = 0;          ///< of the same, of all threads
  std::uint64_t chunks = 0;        ///< that were loaded until then
};

Start start_loader(const std::string& pack, const ImageLoaderOptions& options) {
  Start start;
  std::optional<ImageLoader> loader;
  start.open_seconds = seconds_of([&] { loader.emplace(pack, options); });
  start.first_batch_seconds = start.open_seconds + seconds_of([&] { static_cast<void>(loader->next()); });
  start.cpu_seconds = static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
  start.chunks = loader->stats().chunk_fetches;
  return start;
}

void print_start(const std::string& pack, Shuffle order, Cache cache, int rounds) {
  std::vector<double> open;
  std::vector<double> first;
  std::vector<double> cpu;
  std::uint64_t chunks = 0;
  for (int round = 0; round < rounds; ++round) {
    touch_free_memory();
    const Start start = in_own_process([&] {
      return start_loader(pack, {.batch_size = kBenchBatch,
                                 .shuffle = order,
                                 .augment = bench_augment(read_pack_info(pack)),
                                 .cache = cache});
    });
    open.push_back(start.open_seconds);
    first.push_back(start.first_batch_seconds);
    cpu.push_back(start.cpu_seconds);
    chunks = start.chunks;
  }
  std::printf("%-20s opened %6.1f ms  first batch %6.1f ms  %5.2f of %.0f ms  (CPU %6.1f ms, %" PRIu64
              " chunks)\n",
              case_name(order, cache).c_str(), median(open) * 1e3, median(first) * 1e3,
              median(first) / kAimSeconds, kAimSeconds * 1e3, median(cpu) * 1e3, chunks);
}

}  // namespace
}  // namespace chunkhit

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 5;
  for (const chunkhit::Shuffle order : chunkhit::kOrders)
    for (const chunkhit::Cache cache : chunkhit::kResidencies)
      chunkhit::print_start(argv[1], order, cache, rounds);
}
