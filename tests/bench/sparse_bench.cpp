// The loader of user-item matrices, by itself; sparse_scipy.py runs it beside scipy. Prints one JSON object.
// usage: sparse_bench PACK [STEP_MS]; medians of five epochs after one that is not counted.
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "bench_clock.h"
#include "chunkhit/sparse_loader.h"

namespace chunkhit {
namespace {

constexpr std::uint64_t kEpochs = 5;

std::uint64_t page_faults() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_minflt);
}

struct Measured {
  double epoch_seconds = 0;
  double batch_seconds = 0;
  double rows_per_second = 0;
  double faults_per_batch = 0;
};

Measured measure(const std::string& pack, const SparseLoaderOptions& options) {
  SparseLoader loader(pack, options);
  const auto run = [&](std::uint64_t epoch) {
    for (const SparseBatch& batch : loader.epoch(epoch)) static_cast<void>(batch);
  };
  run(0);
  const std::uint64_t problems = page_faults();
  std::vector<double> seconds;
  for (std::uint64_t epoch = 1; epoch <= kEpochs; ++epoch) seconds.push_back(seconds_of([&] { run(epoch); }));
  const auto batches = static_cast<double>(loader.batch_count());
  const double epoch = median(seconds);
  return {epoch, epoch / batches, static_cast<double>(loader.size()) / epoch,
          static_cast<double>(page_faults() - problems) / (batches * kEpochs)};
}

/// The share of an epoch that a training step waits: a GPU's step leaves the CPUs free, so it sleeps.
double wait_fraction(const std::string& pack, double step_seconds) {
  SparseLoader loader(pack, {.batch_size = 500, .shuffle = Shuffle::global, .seed = 1, .threads = 2});
  const auto run = [&](std::uint64_t epoch) {
    for (const SparseBatch& batch : loader.epoch(epoch)) {
      static_cast<void>(batch);
      std::this_thread::sleep_for(std::chrono::duration<double>(step_seconds));
    }
  };
  run(0);
  loader.reset_stats();
  run(1);
  return loader.stats().wait_fraction();
}

void print_all(const std::string& pack, double step_seconds) {
  const auto with = [](SparseFormat format, Shuffle shuffle, Cache cache, std::uint32_t threads) {
    return SparseLoaderOptions{.batch_size = 500,
                               .shuffle = shuffle,
                               .seed = 1,
                               .format = format,
                               .cache = cache,
                               .threads = threads,
                               .prefetch = threads + 1};
  };
  const auto decoded = Cache::decoded;
  const Measured dense = measure(pack, with(SparseFormat::dense_f32, Shuffle::global, decoded, 1));
  const Measured half = measure(pack, with(SparseFormat::dense_f16, Shuffle::global, decoded, 1));
  const Measured bytes = measure(pack, with(SparseFormat::dense_u8, Shuffle::global, decoded, 1));
  const Measured csr = measure(pack, with(SparseFormat::csr, Shuffle::global, decoded, 1));
  const Measured both = measure(pack, with(SparseFormat::dense_f32, Shuffle::global, decoded, 2));
  const Measured stream = measure(pack, with(SparseFormat::csr, Shuffle::window, Cache::none, 1));
  std::printf(
      "{\"dense_f32_ms\": %.4f, \"dense_f16_ms\": %.4f, \"dense_u8_ms\": %.4f, \"csr_ms\": %.4f,\n"
      " \"dense_faults_per_batch\": %.4f, \"csr_faults_per_batch\": %.4f,\n"
      " \"dense_epoch_2_threads_s\": %.4f, \"stream_csr_rows_per_second\": %.0f, \"wait_fraction\": %.4f}\n",
      1e3 * dense.batch_seconds, 1e3 * half.batch_seconds, 1e3 * bytes.batch_seconds, 1e3 * csr.batch_seconds,
      dense.faults_per_batch, csr.faults_per_batch, both.epoch_seconds, stream.rows_per_second,
      wait_fraction(pack, step_seconds));
}

}  // namespace
}  // namespace chunkhit

int main(int count, char** arguments) {
  if (count != 2 && count != 3) {
    std::fprintf(stderr, "usage: sparse_bench PACK [STEP_MS]\n");
    return 2;
  }
  try {
    chunkhit::print_all(arguments[1], count == 3 ? std::atof(arguments[2]) / 1e3 : 0.0197);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
