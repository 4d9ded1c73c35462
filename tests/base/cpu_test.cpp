#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "base/resources.h"

namespace chunkhit {
namespace {

TEST(AllowedCpus, AreAtLeastOneAndAtMostTheAffinityMask) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  ASSERT_EQ(::sched_getaffinity(0, sizeof mask, &mask), 0);
  EXPECT_GE(allowed_cpus(), 1u);
  EXPECT_LE(allowed_cpus(), static_cast<std::uint32_t>(CPU_COUNT(&mask)));
}

TEST(AllowedCpus, AreOneWhereTheMaskLeavesOne) {
  std::uint32_t cpus = 0;
  // The mask belongs to the thread, so the other tests keep theirs.
  std::thread([&] {
    cpu_set_t mask;
    CPU_ZERO(&mask);
    ::sched_getaffinity(0, sizeof mask, &mask);
    int first = 0;
    while (!CPU_ISSET(first, &mask)) ++first;
    CPU_ZERO(&mask);
    CPU_SET(first, &mask);
    ASSERT_EQ(::sched_setaffinity(0, sizeof mask, &mask), 0);
    cpus = allowed_cpus();
  }).join();
  EXPECT_EQ(cpus, 1u);
}

TEST(AllowedCpus, AreSharedByTheProcessesOfATraining) {
  const std::uint32_t cpus = allowed_cpus();
  EXPECT_EQ(local_processes(), 1u);
  for (const char* const name : {"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"}) {
    ::setenv(name, "2", 1);
    EXPECT_EQ(local_processes(), 2u);
    EXPECT_EQ(cpu_share(), std::max(1u, cpus / 2));
    EXPECT_LT(memory_share(), available_memory() / 2 + available_memory() / 4);
    ::setenv(name, "4096", 1);
    EXPECT_EQ(cpu_share(), std::max(1u, cpus / 4096));
    for (const char* const wrong : {"", "0", "-1", "4097", "2x", "99999999999999999999"}) {
      ::setenv(name, wrong, 1);
      EXPECT_EQ(local_processes(), 1u) << wrong;
    }
    ::unsetenv(name);
  }
  EXPECT_EQ(all_processes(), 1u);
  ::setenv("WORLD_SIZE", "8192", 1);
  EXPECT_EQ(all_processes(), 8192u);
  ::unsetenv("WORLD_SIZE");
}

}  // namespace
}  // namespace chunkhit
