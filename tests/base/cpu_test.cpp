#include <gtest/gtest.h>
#include <sched.h>

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

}  // namespace
}  // namespace chunkhit
