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

TEST(RejectReasons, AreCountedByTheirFirstWords) {
  EXPECT_EQ(reason_kind("truncated data: ends near row 211 of 384"), "truncated data");
  EXPECT_EQ(reason_kind("no such file"), "no such file");
  EXPECT_EQ(reason_kind("file name is not UTF-8"), "file name is not UTF-8");
  EXPECT_EQ(reason_kind("row has 1 field, expected at least 2"), "row has N field");
  EXPECT_EQ(reason_kind("is 70000x12 pixels, over the limit of 1"), "is NxN pixels");
  EXPECT_EQ(reason_kind("column \"x1\": label is missing"), "column \"x1\": label is missing");
}

TEST(ReasonKind, CountedDifferentReasonsOfMasksAsOne) {
  EXPECT_EQ(reason_kind("its mask a/1.png: is empty"), "its mask: is empty");
  EXPECT_EQ(reason_kind("its mask a/2.png: has 3 x 4 pixels, expected 5 x 6"), "its mask: has N x N pixels");
  EXPECT_EQ(reason_kind("its view b/3.png: no such file"), "its view: no such file");
  EXPECT_EQ(reason_kind("its mask a/3.png: has colors: red 1, green 2, blue 3 at (4, 5): expected"),
            "its mask: has colors");
  EXPECT_EQ(reason_kind("its mask: has 4 x 3 pixels, expected"), "its mask: has N x N pixels");
}

}  // namespace
}  // namespace chunkhit
