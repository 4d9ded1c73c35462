#include "ratings/svmlight.h"

#include <gtest/gtest.h>

#include "chunkhit/error.h"
#include "support/read_ratings.h"
#include "support/temporary_folder.h"

namespace chunkhit {
namespace {

using Texts = std::vector<std::string>;

class Svmlight : public testing::Test {
 protected:
  ReadRatings read(const std::string& text) {
    SvmlightReader reader({folder_.write("a.svm", text)}, false);
    const ReadRatings all = read_all(reader);
    labels_ = reader.take_row_labels();
    return all;
  }
  TemporaryFolder folder_;
  RowLabels labels_;
};

TEST_F(Svmlight, ReadsRowsWithLabels) {
  const ReadRatings all = read("# made by hand\n1 1:0.5 3:-2\r\n\n-1.5 2:7 # a row\n2");
  EXPECT_EQ(all.ratings, Texts({"0 1 0.5", "0 3 -2", "1 2 7"}));
  EXPECT_EQ(labels_.values, std::vector<float>({1, -1.5F, 2}));
  EXPECT_EQ(labels_.ends, std::vector<std::uint64_t>({1, 2, 3}));
  EXPECT_TRUE(labels_.groups.empty());
  EXPECT_EQ(all.facts.user_count, 3u);
  EXPECT_EQ(all.facts.item_count, 3u);
  EXPECT_EQ(all.line_count, 5u);
}

TEST_F(Svmlight, CountsTheBytesOfItsText) {
  const std::string text = "# made by hand\n1 1:0.5 3:-2\r\n\n2";
  const std::string path = folder_.write("a.svm", text);
  SvmlightReader reader({path}, false);
  EXPECT_EQ(reader.text_bytes(), text.size());
  RatingBlock block;
  ASSERT_TRUE(reader.next(block));
  EXPECT_EQ(block.text_bytes, text.size());
  EXPECT_EQ(SvmlightReader({path, path}, false).text_bytes(), std::nullopt);
}

TEST_F(Svmlight, ReadsManyLabelsOrNone) {
  EXPECT_EQ(read("1,2,4 1:1\n3:1\n").ratings, Texts({"0 1 1", "1 3 1"}));
  EXPECT_EQ(labels_.values, std::vector<float>({1, 2, 4}));
  EXPECT_EQ(labels_.ends, std::vector<std::uint64_t>({3, 3}));
}

TEST_F(Svmlight, ReadsQueriesOf64Bits) {
  EXPECT_EQ(read("1 1:1\n1 qid:72048431380967004 1:1\n1 qid:-3\n").bad_lines, Texts());
  EXPECT_EQ(labels_.groups, std::vector<std::int64_t>({RowLabels::kNoGroup, 72048431380967004, -3}));
}

TEST_F(Svmlight, TellsTheBaseByAnIndexZeroAnywhere) {
  EXPECT_EQ(read("1 2:1 5:1\n1 0:1 3:1\n").facts.item_count, 6u);
  EXPECT_EQ(read("1 2:1 5:1\n").facts.item_count, 5u);
}

TEST_F(Svmlight, ReadsFilesAsOneMatrix) {
  const std::string train = folder_.write("train", "1 1:1\n2 0:2");
  const std::string test = folder_.write("test", "3 1:3\nx\n");
  SvmlightReader reader({train, test}, false);
  const ReadRatings all = read_all(reader);
  EXPECT_EQ(all.ratings, Texts({"0 1 1", "1 0 2", "2 1 3"}));
  EXPECT_EQ(all.facts.user_count, 4u);
  EXPECT_EQ(all.bad_lines, Texts({"2:1 label: expected a finite number, found \"x\""}));
}

TEST_F(Svmlight, NamesBadLinesAndGivesNothingOfThem) {
  const auto bad = [&](const char* line) {
    const ReadRatings all = read(line);
    EXPECT_EQ(all.ratings, Texts()) << line;
    EXPECT_EQ(labels_.values.size(), 0u) << line;
    EXPECT_EQ(labels_.row_count(), 1u) << line;
    return all.bad_lines;
  };
  EXPECT_EQ(bad("1 3:1 2:1"), Texts({"1:7 index: expected one above that before it, found \"2\""}));
  EXPECT_EQ(bad("1 3:1 3:1"), Texts({"1:7 index: expected one above that before it, found \"3\""}));
  EXPECT_EQ(bad("1 -3:1"), Texts({"1:3 index: expected a whole number from 0, found \"-3\""}));
  EXPECT_EQ(bad("1 9223372036854775808:1"),
            Texts({"1:3 index: expected a whole number from 0, found \"9223372036854775808\""}));
  EXPECT_EQ(bad("1 3:inf"), Texts({"1:5 value: expected a finite number, found \"inf\""}));
  EXPECT_EQ(bad("1 3:"), Texts({"1:5 value: expected a finite number, found nothing"}));
  EXPECT_EQ(bad("1 3:1 4"), Texts({"1:7 expected index:value, found \"4\""}));
  EXPECT_EQ(bad("1, 3:1"), Texts({"1:3 label: expected a finite number, found nothing"}));
  EXPECT_EQ(bad("1 qid:1.5 3:1"), Texts({"1:7 qid: expected a whole number of 64 bits, found \"1.5\""}));
  EXPECT_EQ(bad("1 3:1 qid:1"), Texts({"1:7 index: expected a whole number from 0, found \"qid\""}));
}

}  // namespace
}  // namespace chunkhit
