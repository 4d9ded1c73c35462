#include <gtest/gtest.h>

#include <chrono>

#include "decode/image_decoder.h"
#include "support/simulated_clock.h"

namespace chunkhit {
namespace {

using namespace std::chrono_literals;

TEST(DecodeMonitor, AStoppedProcessMadeGoodImagesLate) {
  const DecodeOptions options{.max_seconds = 1};
  SimulatedClock clock;
  const DecodeMonitor monitor(options);
  clock.sleep(1h);
  EXPECT_FALSE(monitor.is_out_of_time());
  clock.compute(900ms);
  EXPECT_FALSE(monitor.is_out_of_time());
  clock.compute(200ms);
  EXPECT_TRUE(monitor.is_out_of_time());
}

TEST(DecodeMonitor, WithoutALimitTimeNeverEnds) {
  const DecodeOptions options{.max_seconds = 0};
  EXPECT_FALSE(DecodeMonitor(options).is_out_of_time());
}

}  // namespace
}  // namespace chunkhit
