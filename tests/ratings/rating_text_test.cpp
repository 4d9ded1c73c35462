#include "ratings/rating_text.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "support/rating_rows.h"

namespace chunkhit {
namespace {

using namespace std::string_view_literals;
using Rows = std::vector<std::string>;

/// Four columns: user, item, value, time.
RatingTextSpec spec_with(const std::string& delimiter) {
  RatingTextSpec spec;
  spec.delimiter = delimiter;
  spec.columns = {0, 1, 2, 3};
  return spec;
}

/// Parses a copy that ends where its memory ends, so that a sanitizer sees what is read behind it.
RatingBlock parsed(std::string_view text, const RatingTextSpec& spec) {
  const auto copy = std::make_unique<char[]>(text.size());
  std::copy(text.begin(), text.end(), copy.get());
  RatingBlock block;
  block.values = {9};  // what was there before must not matter
  block.line_count = 9;
  block.users.of_rating = {9};
  parse_rating_text({copy.get(), text.size()}, spec, block);
  return block;
}

TEST(RatingText, ReadsMovieLens20M) {
  RatingTextSpec spec = spec_with(",");
  spec.header = "userId,movieId,rating,timestamp";
  const RatingBlock block =
      parsed("userId,movieId,rating,timestamp\n1,2,3.5,1112486027\n1,29,4.0,1112484676\n", spec);
  EXPECT_EQ(rating_rows(block), (Rows{"1 2 3.5 1112486027", "1 29 4 1112484676"}));
  EXPECT_EQ(block.line_count, 3u);
  EXPECT_EQ(block.header_lines, 1u);
  EXPECT_EQ(block.users.numbers, (std::vector<std::int64_t>{1}));
  EXPECT_TRUE(block.bad_lines.empty());
}

TEST(RatingText, ReadsMovieLens1MWithADelimiterOfTwoCharacters) {
  EXPECT_EQ(rating_rows(parsed("1::1193::5::978300760\n1::661::3::978302109\n", spec_with("::"))),
            (Rows{"1 1193 5 978300760", "1 661 3 978302109"}));
}

TEST(RatingText, ReadsMovieLens100K) {
  EXPECT_EQ(rating_rows(parsed("196\t242\t3\t881250949\n186\t302\t3\t891717742\n", spec_with("\t"))),
            (Rows{"196 242 3 881250949", "186 302 3 891717742"}));
}

TEST(RatingText, ReadsRunsOfBlanksAsOneDelimiter) {
  const RatingBlock block = parsed("  1  2\t3 4  \n5 6 7 8\n", spec_with(std::string(kBlanks)));
  EXPECT_EQ(rating_rows(block), (Rows{"1 2 3 4", "5 6 7 8"}));
}

TEST(RatingText, ReadsEveryKindOfLineEnd) {
  for (const char* text :
       {"1,2,3,4\n5,6,7,8\n", "1,2,3,4\r\n5,6,7,8\r\n", "1,2,3,4\n5,6,7,8", "1,2,3,4\r\n5,6,7,8\r"}) {
    const RatingBlock block = parsed(text, spec_with(","));
    EXPECT_EQ(rating_rows(block), (Rows{"1 2 3 4", "5 6 7 8"})) << text;
    EXPECT_EQ(block.line_count, 2u);
  }
}

TEST(RatingText, TakesColumnsInAnyOrderAndNoOthers) {
  RatingTextSpec spec;
  spec.columns = {3, 0, {}, 1};
  const RatingBlock block = parsed("i,7,\"x,u,more,and more\n", spec);
  EXPECT_EQ(rating_rows(block), (Rows{"u i 7"})) << "columns are counted without quotes";
}

TEST(RatingText, GivesNoValuesAndTimesWithoutTheirColumns) {
  RatingTextSpec spec;
  EXPECT_EQ(rating_rows(parsed("1,2\n3,4,5\n", spec)), (Rows{"1 2", "3 4"}));
}

TEST(RatingText, NeverChangesIds) {
  RatingTextSpec spec;
  const RatingBlock block = parsed("007,5863.0\n7, 8\n+7,8\na b,\xc3\xa9\n", spec);
  EXPECT_EQ(rating_rows(block), (Rows{"007 5863.0", "7  8", "+7 8", "a b \xc3\xa9"}));
  EXPECT_TRUE(block.users.are_text());
  EXPECT_EQ(block.users.texts.size(), 4u);
}

TEST(RatingText, KeepsIntegersAsIntegersBesideAColumnOfText) {
  RatingTextSpec spec;
  const RatingBlock block = parsed("9223372036854775807,b\n9223372036854775806,b\n", spec);
  EXPECT_EQ(block.users.numbers, (std::vector<std::int64_t>{INT64_MAX, INT64_MAX - 1}));
  EXPECT_EQ(block.items.texts.text, "b");
  EXPECT_EQ(block.items.of_rating, (std::vector<std::uint32_t>{0, 0}));
}

TEST(RatingText, RefusesMissingIds) {
  RatingTextSpec spec;
  const RatingBlock block = parsed(",2\n1,\nNULL,2\nnan,2\n1,NaN\n\\N,2\nnull7,2\nNA,2\n", spec);
  EXPECT_EQ(rating_rows(block), (Rows{"null7 2", "NA 2"}));
  EXPECT_EQ(bad_rows(block),
            (Rows{"1:1: user: expected an id, found nothing", "2:3: item: expected an id, found nothing",
                  "3:1: user: expected an id, found \"NULL\"", "4:1: user: expected an id, found \"nan\"",
                  "5:3: item: expected an id, found \"NaN\"", "6:1: user: expected an id, found \"\\N\""}));
}

TEST(RatingText, RefusesValuesAndTimesThatAreNoNumbers) {
  const RatingBlock block =
      parsed("1,2,,4\n1,2,nan,4\n1,2,inf,4\n1,2,3,\n1,2,3,soon\n1,2,x\x1b,4\n5,6,7,8\n", spec_with(","));
  EXPECT_EQ(rating_rows(block), (Rows{"5 6 7 8"}));
  EXPECT_EQ(bad_rows(block), (Rows{"1:5: value: expected a number, found nothing",
                                   "2:5: value: expected a number, found \"nan\"",
                                   "3:5: value: expected a number, found \"inf\"",
                                   "4:7: time: expected a number or YYYY-MM-DD[THH:MM:SS], found nothing",
                                   "5:7: time: expected a number or YYYY-MM-DD[THH:MM:SS], found \"soon\"",
                                   "6:5: value: expected a number, found \"x\\x1b\""}));
  EXPECT_EQ(block.bad_lines[0].text, "1,2,,4");
}

TEST(RatingText, RefusesLinesWithTooFewColumns) {
  const RatingBlock block = parsed("1,2,3\n\n   \n7\n1,2,3,4\n", spec_with(","));
  EXPECT_EQ(bad_rows(block), (Rows{"1:6: line: expected at least 4 columns, found 3",
                                   "4:2: line: expected at least 4 columns, found 1"}));
  EXPECT_EQ(block.blank_lines, 2u);
  EXPECT_EQ(block.line_count, 5u);
}

TEST(RatingText, SkipsCommentsOnlyWhereTheyAreWanted) {
  RatingTextSpec spec;
  EXPECT_EQ(rating_rows(parsed("#1,2\n3,4\n", spec)), (Rows{"#1 2", "3 4"}));
  spec.comment = "#";
  const RatingBlock block = parsed("#1,2\n3,4\n", spec);
  EXPECT_EQ(rating_rows(block), (Rows{"3 4"}));
  EXPECT_EQ(block.comment_lines, 1u);
}

TEST(RatingText, SkipsTheHeadersOfFilesPutOneBehindTheOther) {
  RatingTextSpec spec;
  spec.header = "user,item";
  const RatingBlock block =
      parsed("user,item\n1,2\nuser,item\r\n3,4\n\xef\xbb\xbfuser,item\nuser,items\n", spec);
  EXPECT_EQ(rating_rows(block), (Rows{"1 2", "3 4", "user items"}));
  EXPECT_EQ(block.header_lines, 3u);
}

TEST(RatingText, TakesQuotesForLettersUnlessAskedOtherwise) {
  RatingTextSpec spec;
  spec.delimiter = "\t";
  EXPECT_EQ(rating_rows(parsed("\"u\t\"i\"\n", spec)), (Rows{"\"u \"i\""}));
  spec.quoting = TextQuoting::double_quote;
  const RatingBlock block =
      parsed("\"1\"\t\"i\tj\"\n\"1\"\t\"say \"\"hi\"\"\"\n\"two\nlines\"\tx\n8\t9\n", spec);
  EXPECT_EQ(rating_rows(block), (Rows{"1 i\tj", "1 say \"hi\"", "two\nlines x", "8 9"}));
  EXPECT_EQ(block.line_count, 5u);
}

TEST(RatingText, RefusesQuotesThatAreNotAsTheyShouldBe) {
  RatingTextSpec spec;
  spec.quoting = TextQuoting::double_quote;
  const RatingBlock block = parsed("\"a\"b,1\nc\"d\",1\n1,2\n\"e,3\nf,4\n", spec);
  EXPECT_EQ(rating_rows(block), (Rows{"1 2"}));
  EXPECT_EQ(bad_rows(block),
            (Rows{"1:4: quotes: text behind a closing one (`quote` none takes quotes for letters)",
                  "2:2: quotes: one in a field without quotes (`quote` none takes quotes for letters)",
                  "4:1: quotes: one is never closed (`quote` none takes quotes for letters)"}));
}

// "Heat (1995), director's cut" as one field of a CSV gave an item of half the title.
TEST(RatingText, RefusesMoreFieldsThanTheFirstLineHas) {
  RatingTextSpec spec;
  spec.columns = {0, 1, {}, {}};
  spec.column_count = 3;
  const RatingBlock block = parsed("1,2,3\n1,2,3,4\n1,\"Heat, 1995\",3\n1,2\n1,2,3,4,5\n", spec);
  EXPECT_EQ(rating_rows(block), (Rows{"1 2", "1 2"}));
  EXPECT_EQ(
      bad_rows(block),
      (Rows{"2:8: line: expected 3 columns, as in the first line, found 4",
            "3:17: line: expected 3 columns, as in the first line, found 4; `quote` double keeps fields "
            "in quotes whole",
            "5:10: line: expected 3 columns, as in the first line, found 5"}));
  for (const char* delimiter : {"::", "blanks"}) {
    spec.delimiter = delimiter;
    const RatingBlock other =
        parsed(delimiter == kBlanks ? "1 2  3\n1 2 3 4\n" : "1::2::3\n1::2::3::\n", spec);
    EXPECT_EQ(rating_rows(other), Rows{"1 2"}) << delimiter;
    EXPECT_EQ(bad_rows(other).size(), 1u) << delimiter;
  }
  spec.delimiter = ",";
  spec.quoting = TextQuoting::double_quote;
  EXPECT_EQ(rating_rows(parsed("1,\"Heat, 1995\",3\n1,2,3,4\n", spec)), Rows{"1 Heat, 1995"});
}

TEST(RatingText, RefusesIdsThatAreNotUtf8) {
  const RatingBlock block = parsed("a,x,1,1\nb\xe9,x,2,2\nc,\xc3,3,3\nd,\xc3\xa9,4,4\n", spec_with(","));
  EXPECT_EQ(rating_rows(block), (Rows{"a x 1 1", "d \xc3\xa9 4 4"}));
  EXPECT_EQ(bad_rows(block), (Rows{"2:1: user: expected UTF-8; `encoding` latin-1 reads ISO 8859-1",
                                   "3:3: item: expected UTF-8; `encoding` latin-1 reads ISO 8859-1"}));
  RatingTextSpec spec = spec_with("\xa9");
  spec.columns = {0, 1, {}, {}};
  const RatingBlock cut = parsed("\xc3\xa9\xc3\xa8,1,1\n", spec);
  EXPECT_EQ(bad_rows(cut), Rows{"1:1: user: expected UTF-8; `encoding` latin-1 reads ISO 8859-1"});
}

TEST(RatingText, RefusesNulBytes) {
  RatingTextSpec spec;
  const RatingBlock block = parsed("a\0b,2\n3,4\n"sv, spec);
  EXPECT_EQ(rating_rows(block), (Rows{"3 4"}));
  EXPECT_EQ(bad_rows(block), (Rows{"1:2: line: expected text, found a NUL byte"}));
}

TEST(RatingText, EndsAtALineThatIsTooLong) {
  RatingTextSpec spec;
  const std::string longest = std::string(kMaxLineBytes - 2, 'x') + ",2";
  EXPECT_EQ(parsed(longest + "\r\n3,4\n", spec).size(), 2u);
  const RatingBlock block = parsed("1,2\nx" + longest + "\n3,4\n", spec);
  EXPECT_EQ(rating_rows(block), (Rows{"1 2"}));
  EXPECT_EQ(bad_rows(block), (Rows{"2:1: line: expected at most 1 MiB, found more"}));
}

TEST(RatingText, KeepsFewBadLinesAndCountsAll) {
  std::string text;
  for (int line = 0; line < 1000; ++line) text += line % 2 == 0 ? "1,x,y,4\n" : "1\n";
  const RatingBlock block = parsed(text, spec_with(","));
  EXPECT_EQ(block.bad_lines.size(), kMaxBadLines);
  EXPECT_EQ(bad_line_count(block), 1000u);
  EXPECT_EQ(block.more_bad_lines.at("value: expected a number"), 450u);
  EXPECT_EQ(block.more_bad_lines.at("line: expected at least 4 columns"), 450u);
}

TEST(RatingText, ReadsNothing) { EXPECT_EQ(parsed("", spec_with(",")).line_count, 0u); }

}  // namespace
}  // namespace chunkhit
