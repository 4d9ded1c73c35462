// How a loader uses more threads than there are CPUs, where they wait for storage: each read of a file takes
// DELAY_MS longer, as from a disk of a server, while the CPU does other work. usage: reader_threads_bench
// PACK [DELAY_MS] [ROUNDS]; for 1 to 64 threads it prints medians of ROUNDS (3) times of half a second, and
// the share of one sample a thread in DELAY_MS (2); the aim is 0.9. Samples are read one by one here.
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench_clock.h"
#include "chunkhit/image_loader.h"
#include "loader_cases.h"

namespace chunkhit {
namespace {

constexpr double kRoundSeconds = 0.5;

std::atomic<std::chrono::microseconds> read_delay{};

double cpu_seconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

/// An endless loop over a loader; its first epoch has no delay.
class Loop {
 public:
  Loop(const std::string& pack, Shuffle order, std::uint32_t threads)
      : loader_(
            pack,
            {.batch_size = 64, .shuffle = order, .cache = Cache::none, .threads = threads, .prefetch = 64}) {
    while (loader_.next() != nullptr) {
    }
  }
  /// Samples a second, and CPU seconds a sample.
  std::pair<double, double> run() {
    const double cpu = cpu_seconds();
    std::uint64_t samples = 0;
    double seconds = 0;
    const auto begin = std::chrono::steady_clock::now();
    while (seconds < kRoundSeconds) {
      const ImageBatch* const batch = loader_.next();
      if (batch == nullptr)
        static_cast<void>(loader_.epoch(++epoch_));
      else
        samples += batch->samples.size();
      seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    }
    return {static_cast<double>(samples) / seconds, (cpu_seconds() - cpu) / static_cast<double>(samples)};
  }

 private:
  ImageLoader loader_;
  std::uint64_t epoch_ = 0;
};

void print_threads(const std::string& pack, Shuffle order, std::chrono::microseconds delay, int rounds) {
  for (std::uint32_t threads = 1; threads <= 64; threads *= 2) {
    read_delay = std::chrono::microseconds(0);
    Loop loop(pack, order, threads);
    read_delay = delay;
    static_cast<void>(loop.run());  // uses up what was made ahead
    std::vector<double> speeds;
    std::vector<double> cpu;
    for (int round = 0; round < rounds; ++round) {
      const auto [speed, seconds] = loop.run();
      speeds.push_back(speed);
      cpu.push_back(seconds);
    }
    const double limit = threads / std::chrono::duration<double>(delay).count();
    std::printf("%-16s %2u threads: %8.0f samples/s, %5.2f of the delay's limit, %5.1f us of CPU each\n",
                case_name(order, Cache::none).c_str(), threads, median(speeds), median(speeds) / limit,
                median(cpu) * 1e6);
    read_delay = std::chrono::microseconds(0);
  }
}

}  // namespace
}  // namespace chunkhit

extern "C" ssize_t pread(int fd, void* out, std::size_t bytes, off_t offset) {
  if (const auto delay = chunkhit::read_delay.load(); delay.count() > 0) std::this_thread::sleep_for(delay);
  return ::syscall(SYS_pread64, fd, out, bytes, offset);
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const double milliseconds = argc > 2 ? std::atof(argv[2]) : 2;
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 3;
  const auto delay = std::chrono::microseconds(static_cast<std::int64_t>(milliseconds * 1e3));
  using chunkhit::Shuffle;
  for (const Shuffle order : {Shuffle::window, Shuffle::global})
    chunkhit::print_threads(argv[1], order, delay, rounds);
}
