// How long a training step waits for its batch when it takes as long as one thread takes to load one; the aim
// is less than 2 % of the time. The step sleeps, as the CPU does while a GPU computes. usage:
// reader_step_bench PACK [ROUNDS]; in each of ROUNDS (5) an empty loop with one thread tells the step's
// length for an epoch on all allowed CPUs; prints medians.
#include <sys/prctl.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench_clock.h"
#include "chunkhit/image_loader.h"
#include "loader_cases.h"

namespace chunkhit {
namespace {

constexpr double kAimShare = 0.02;

/// Epochs after the first, in which hashes are checked.
class Epochs {
 public:
  Epochs(const std::string& pack, ImageLoaderOptions options) : loader_(pack, std::move(options)) {
    static_cast<void>(run(0));
  }
  LoaderStats run(double step_seconds) {
    loader_.reset_stats();
    for ([[maybe_unused]] const ImageBatch& batch : loader_.epoch(epoch_++))
      if (step_seconds > 0) std::this_thread::sleep_for(std::chrono::duration<double>(step_seconds));
    return loader_.stats();
  }

 private:
  ImageLoader loader_;
  std::uint64_t epoch_ = 0;
};

double per_batch(double seconds, const LoaderStats& stats) {
  return seconds / static_cast<double>(stats.batches);
}

void print_step(const std::string& pack, Shuffle order, Cache cache, int rounds) {
  ImageLoaderOptions options{.batch_size = kBenchBatch, .shuffle = order, .cache = cache};
  Epochs on_all(pack, options);
  options.threads = 1;
  Epochs on_one(pack, options);
  std::vector<double> load_seconds;
  std::vector<double> step_seconds;
  std::vector<double> waited;
  std::uint32_t threads = 0;
  for (int round = 0; round < rounds; ++round) {
    const LoaderStats bare = on_one.run(0);
    load_seconds.push_back(per_batch(bare.seconds, bare));
    const LoaderStats stepped = on_all.run(load_seconds.back());
    step_seconds.push_back(per_batch(stepped.step_seconds, stepped));
    waited.push_back(stepped.wait_fraction());
    threads = stepped.threads;
  }
  std::printf(
      "%-20s one thread loads a batch in %7.3f ms; step %7.3f ms, %u threads: waited %5.2f %%  %5.2f of"
      " %.0f %%\n",
      case_name(order, cache).c_str(), median(load_seconds) * 1e3, median(step_seconds) * 1e3, threads,
      median(waited) * 100, median(waited) / kAimShare, kAimShare * 100);
}

}  // namespace
}  // namespace chunkhit

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 5;
  // Else a sleep takes 50 µs longer than it was asked to, which would flatter the loader.
  ::prctl(PR_SET_TIMERSLACK, 1UL, 0, 0, 0);
  using chunkhit::Cache;
  using chunkhit::Shuffle;
  for (const auto& [order, cache] : {std::pair{Shuffle::none, Cache::none},
                                     {Shuffle::window, Cache::none},
                                     {Shuffle::window, Cache::compressed},
                                     {Shuffle::global, Cache::decoded}})
    chunkhit::print_step(argv[1], order, cache, rounds);
}
