#include "progress.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "support/simulated_clock.h"

namespace chunkhit {
namespace {

TEST(Progress, LinesWithoutATerminalHadNoShareAndNoTimeLeft) {
  SimulatedClock clock;
  ProgressDisplay display(ProgressStyle::lines);
  ShownProgress progress;
  progress.phase = "packing";
  progress.things = "rows";
  progress.rate = "img/s";
  progress.subject = "train";
  progress.total = 4000;
  progress.problem_name = "rejected";
  testing::internal::CaptureStderr();
  display.show(progress);
  clock.sleep(std::chrono::seconds(1));
  progress.done = 1000;
  display.show(progress);
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(text.starts_with("train: 25 %, 1,000 of 4,000 rows, ")) << text;
  EXPECT_NE(text.find(" left, 0 rejected\n"), std::string::npos) << text;
}

TEST(Progress, TheRateOfASecondPackHadTheRowsOfTheFirstOne) {
  SimulatedClock clock;
  ProgressDisplay display(ProgressStyle::json);
  ShownProgress progress;
  progress.things = "rows";
  progress.total = 2'000'000;
  progress.subject = "out/\"val\"";
  testing::internal::CaptureStderr();
  for (const std::string_view phase : {"packing", "finishing", "packing"}) {
    progress.phase = phase;
    progress.done = phase == "packing" && progress.done > 0 ? 1'000'000 : progress.done + 1;
    display.show(progress);
  }
  clock.sleep(std::chrono::seconds(1));
  progress.done += 10;
  display.show(progress);
  const std::string text = testing::internal::GetCapturedStderr();
  const std::string last = text.substr(text.rfind('\n', text.size() - 2) + 1);
  const auto at = last.find("\"rows_per_second\":");
  ASSERT_NE(at, std::string::npos) << text;
  EXPECT_LE(std::stod(last.substr(at + 18)), 10) << last;
  EXPECT_NE(last.find("\"subject\":\"out/\\\"val\\\"\""), std::string::npos) << last;
  EXPECT_NE(last.find("\"time\":\"20"), std::string::npos) << last;
}

}  // namespace
}  // namespace chunkhit
