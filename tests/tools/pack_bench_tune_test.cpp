#include "pack_bench_tune.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/cpu.h"

namespace chunkhit {
namespace {

TuneTry tried(std::uint32_t threads, double samples_per_second) {
  TuneTry result;
  result.setting.threads = threads;
  result.samples_per_second = samples_per_second;
  return result;
}

TEST(PackBenchTune, NoiseDoesNotChooseMoreThreadsThanCpus) {
  const std::uint32_t cpus = allowed_cpus();
  const std::vector<TuneTry> tries{tried(1, 70), tried(cpus, 100), tried(4 * cpus, 110)};
  EXPECT_EQ(best_of(tries).setting.threads, cpus);
}

TEST(PackBenchTune, StorageThatWaitsChoosesMoreThreadsThanCpus) {
  const std::uint32_t cpus = allowed_cpus();
  const std::vector<TuneTry> tries{tried(cpus, 100), tried(4 * cpus, 250)};
  EXPECT_EQ(best_of(tries).setting.threads, 4 * cpus);
}

TEST(PackBenchTune, TheFastestWithinTheCpusWins) {
  const std::uint32_t cpus = allowed_cpus();
  EXPECT_EQ(best_of(std::vector<TuneTry>{tried(cpus, 101), tried(1, 100)}).samples_per_second, 101);
  EXPECT_EQ(best_of(std::vector<TuneTry>{tried(8 * cpus, 5), tried(4 * cpus, 7)}).samples_per_second, 7);
}

}  // namespace
}  // namespace chunkhit
