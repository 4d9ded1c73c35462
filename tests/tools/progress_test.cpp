#include "progress.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

namespace chunkhit {
namespace {

TEST(Progress, LinesWithoutATerminalHadNoShareAndNoTimeLeft) {
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
  std::this_thread::sleep_for(std::chrono::milliseconds(1050));
  progress.done = 1000;
  display.show(progress);
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(text.starts_with("train: 25 %, 1,000 of 4,000 rows, ")) << text;
  EXPECT_NE(text.find(" left, 0 rejected\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace chunkhit
