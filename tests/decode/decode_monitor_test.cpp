#include <gtest/gtest.h>

#include <chrono>
#include <ctime>
#include <thread>

#include "decode/image_decoder.h"

namespace chunkhit {
namespace {

TEST(DecodeMonitor, AStoppedProcessMadeGoodImagesLate) {
  const DecodeOptions options{.max_seconds = 1};
  const DecodeMonitor monitor(options);
  std::this_thread::sleep_for(std::chrono::milliseconds(1200));
  EXPECT_FALSE(monitor.is_out_of_time());
  const std::clock_t begin = std::clock();
  while (!monitor.is_out_of_time() && std::clock() - begin < 30 * CLOCKS_PER_SEC) continue;
  EXPECT_TRUE(monitor.is_out_of_time());
  EXPECT_GE(std::clock() - begin, CLOCKS_PER_SEC * 9 / 10);
}

TEST(DecodeMonitor, WithoutALimitTimeNeverEnds) {
  const DecodeOptions options{.max_seconds = 0};
  EXPECT_FALSE(DecodeMonitor(options).is_out_of_time());
}

}  // namespace
}  // namespace chunkhit
