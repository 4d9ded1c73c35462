#include "pack/images/rejects.h"

#include <gtest/gtest.h>

#include "chunkhit/error.h"

namespace chunkhit {
namespace {

const Reject kReject{3, "a.jpg", {"cat"}, "is empty"};

TEST(RejectLimit, StopsOnTheFirstRejectAboveAShareOfAllRows) {
  PackImagesOptions options;
  options.max_errors.share = 0.01;
  RejectLimit limit(options, 200);
  limit.add(kReject);
  limit.add(kReject);
  EXPECT_THROW(limit.add(kReject), Error);
}

TEST(RejectLimit, StopsAtOnceWhenErrorsFail) {
  PackImagesOptions options;
  options.on_error = OnError::fail;
  RejectLimit limit(options, 1'000'000);
  EXPECT_THROW(limit.add(kReject), Error);
}

TEST(RejectLimit, CountsWhenACountIsGiven) {
  PackImagesOptions options;
  options.max_errors.count = 2;
  RejectLimit limit(options, 3);
  limit.add(kReject);
  limit.add(kReject);
  EXPECT_THROW(limit.add(kReject), Error);
}

TEST(RejectLimit, LetsOneRowOfAShortListPass) {
  PackImagesOptions options;
  options.max_errors.share = 0.01;
  RejectLimit limit(options, 30);
  limit.add(kReject);
  EXPECT_THROW(limit.add(kReject), Error);
  options.max_errors.share = 0;
  RejectLimit none(options, 30);
  EXPECT_THROW(none.add(kReject), Error);
}

TEST(RejectsCsv, IsSortedQuotedAndHarmlessInASpreadsheet) {
  SampleList list;
  list.label_columns = {"label"};
  const std::string text = rejects_csv(
      {{9, "=cmd.jpg", {"a \"b\""}, "truncated, near row 3"}, {2, "x,y.jpg", {}, "is empty"}}, list);
  EXPECT_EQ(text,
            "row,file,label,reason\n"
            "2,\"x,y.jpg\",,is empty\n"
            "9,./=cmd.jpg,\"a \"\"b\"\"\",\"truncated, near row 3\"\n");
}

TEST(RejectsCsv, HoldsNoRawBytesOfADamagedFile) {
  SampleList list;
  list.label_columns = {"label"};
  const std::string text =
      rejects_csv({{1, "\xff.png", {"\xc3\xa9"}, std::string("chunk \0\x80Z", 9)}}, list);
  EXPECT_EQ(text, "row,file,label,reason\n1,\\xff.png,\xc3\xa9,chunk \\x00\\x80Z\n");
}

TEST(WarningsCsv, IsATableOfTheSameShape) {
  SampleList list;
  list.label_columns = {"label"};
  EXPECT_EQ(rejects_csv({{5, "b.jpg", {"cat"}, "truncated, near row 3"}, {1, "a.jpg", {"dog"}, "odd"}}, list,
                        "warning"),
            "row,file,label,warning\n1,a.jpg,dog,odd\n5,b.jpg,cat,\"truncated, near row 3\"\n");
  EXPECT_EQ(rejects_csv({}, list, "warning"), "row,file,label,warning\n");
}

}  // namespace
}  // namespace chunkhit
