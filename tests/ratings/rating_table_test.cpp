#include "ratings/rating_table.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "chunkhit/error.h"

namespace chunkhit {
namespace {

RatingTable told(std::string_view text, const RatingTableSpec& spec = {},
                 const RatingTable* earlier = nullptr) {
  return detect_rating_table({text, true, spec.comment}, spec, "r.csv", earlier);
}

std::string error_of(std::string_view text, const RatingTableSpec& spec = {}) {
  try {
    (void)told(text, spec);
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

using Columns = RatingColumns;

TEST(RatingTable, KnowsTheNamesThatDataSetsHave) {
  const RatingTable movielens = told("userId,movieId,rating,timestamp\n1,2,3.5,1112486027\n");
  EXPECT_EQ(movielens.text.columns, (Columns{0, 1, 2, 3}));
  EXPECT_EQ(movielens.text.header, "userId,movieId,rating,timestamp");
  EXPECT_EQ(told("uid,sid\n1,2\n").text.columns, (Columns{0, 1, {}, {}}));
  EXPECT_EQ(told("timestamp;score;Item_ID;User-ID\n1;2;3;4\n").text.columns, (Columns{3, 2, 1, 0}));
  EXPECT_EQ(told("user_id,parent_asin,rating,timestamp\nA,B0,5.0,1588687728923\n").text.columns,
            (Columns{0, 1, 2, 3}));
}

TEST(RatingTable, ReadsRecBolesHeader) {
  const RatingTable table = told("user_id:token\titem_id:token\trating:float\ttimestamp:float\n1\t2\t3\t4\n");
  EXPECT_EQ(table.text.delimiter, "\t");
  EXPECT_EQ(table.text.columns, (Columns{0, 1, 2, 3}));
  EXPECT_EQ(table.column_names[3], "timestamp");
}

TEST(RatingTable, TellsTheDelimiter) {
  EXPECT_EQ(told("1::1193::5::978300760\n1::661::3::978302109\n").text.delimiter, "::");
  EXPECT_EQ(told("196\t242\t3\t881250949\n").text.delimiter, "\t");
  EXPECT_EQ(told("1;2;3,5\n1;3;4,5\n").text.delimiter, ";");
  EXPECT_EQ(told("1|2|3\n").text.delimiter, "|");
  EXPECT_EQ(told("1 2 3\n4  5  6\n").text.delimiter, kBlanks);
  EXPECT_EQ(told("u1\tb, c\t3\nu2\td, e\t4\n").text.delimiter, "\t");
  RatingTableSpec tab;
  tab.delimiter = "\\t";
  EXPECT_EQ(told("1\t2\n", tab).text.delimiter, "\t");
}

TEST(RatingTable, FindsNoHeaderWhereThereIsNone) {
  const RatingTable table = told("1,2,3.5,1112486027\n1,3,4,1112486028\n");
  EXPECT_EQ(table.text.header, "");
  EXPECT_EQ(table.text.columns, (Columns{0, 1, 2, 3}));
  EXPECT_EQ(told("alice,apple\nbob,pear\n").text.columns, (Columns{0, 1, {}, {}}));
  EXPECT_EQ(told("u,i,5,2014-01-01\nv,j,4,2014-01-02\n").text.columns, (Columns{0, 1, 2, 3}));
  EXPECT_EQ(told("u,i,5,Jan 1\nv,j,4,Jan 2\n").text.columns, (Columns{0, 1, 2, {}}));
}

TEST(RatingTable, FindsAHeaderWhoseNamesSayNothing) {
  RatingTableSpec spec;
  spec.user = "1";
  spec.item = "2";
  spec.value = "3";
  EXPECT_EQ(told("a,b,c\n1,2,3\n", spec).text.header, "a,b,c");
  EXPECT_EQ(
      error_of("a,b,c\n1,2,3\n"),
      "r.csv: line 1: no column for `user` among \"a\", \"b\", \"c\"; give its name or number, or `header` "
      "no where this line is a rating");
}

TEST(RatingTable, TakesColumnsByNameOrNumber) {
  RatingTableSpec spec;
  spec.user = "who";
  spec.item = "4";
  spec.value = "none";
  const RatingTable table = told("when,who,rating,what\n1,2,3,4\n", spec);
  EXPECT_EQ(table.text.columns, (Columns{1, 3, {}, {}}));
}

TEST(RatingTable, RefusesColumnsThatCannotBe) {
  RatingTableSpec spec;
  spec.user = "2";
  EXPECT_EQ(error_of("1,2\n", spec), "`user` and `item`: both are column 2; give both");
  spec.user = "3";
  EXPECT_EQ(error_of("1,2\n", spec), "r.csv: line 1: expected column 3 (`user`), found 2 columns");
  spec.user = "99999999999999999999";
  EXPECT_NE(error_of("1,2\n", spec), "none");
  spec.user = "0";
  EXPECT_EQ(error_of("1,2\n", spec), "`user` 0: columns are numbered from 1");
  spec.user = "who";
  EXPECT_EQ(error_of("1,2\n", spec), "r.csv: line 1: expected a header with \"who\" (`user`), found none");
  EXPECT_EQ(error_of("user,item\n1,2\n", spec),
            "r.csv: line 1: no column \"who\" for `user` among \"user\", \"item\"; give its name or number");
  EXPECT_EQ(error_of("rating,user,rating,item\n1,2,3,4\n"),
            "r.csv: line 1: two columns for `value`, 1 and 3; give its number");
  EXPECT_EQ(error_of("1\n2\n"),
            "r.csv: line 1: found none of the delimiters , :: ; | tab and blank; give `delimiter`");
  EXPECT_EQ(
      error_of("\n1 2 3\n1 3 4\n\n1 4\n"),
      "r.csv: line 5: expected 3 columns between blanks, as in the first line, found 2; give `delimiter`");
}

TEST(RatingTable, PointsAtQuotesInAHeaderThatAreToBeLetters) {
  const std::string error = "r.csv: line 1: names stand in quotes; give `quote` double";
  RatingTableSpec spec;
  spec.quote = TextQuoting::none;
  EXPECT_EQ(error_of("\"userId\",\"movieId\",\"rating\"\n1,2,3\n", spec), error);
  EXPECT_EQ(error_of("\"userId\",\"movieId\",\"rating\"\n\"1\",\"2\",\"3\"\n", spec), error);
  EXPECT_EQ(error_of("\"a\",\"b\",\"c\"\n\"1\",\"2\",\"3\"\n", spec), "none");
}

// pandas writes quotes where a field holds a comma; the rest of the line was dropped without a word.
TEST(RatingTable, DetectsQuotesByTheFirstFieldThatBeginsWithOne) {
  const auto quoting = [](std::string_view text) { return told(text).text.quoting; };
  const RatingTable table = told("user,item,rating\n1,Heat,5\n2,\"Heat, 1995\",4\n");
  EXPECT_EQ(table.text.quoting, TextQuoting::double_quote);
  EXPECT_EQ(table.text.column_count, 3u);
  EXPECT_EQ(quoting("\"userId\",\"movieId\",\"rating\"\n1,2,3\n"), TextQuoting::double_quote);
  EXPECT_EQ(quoting("user\titem\n1\t\"Weird Al\" Yankovic\n2\t\"Heroes\"\n"), TextQuoting::letters);
  EXPECT_EQ(quoting("user,item\n1,6\" nails\n2,\"a \"\"b\"\"\"\n"), TextQuoting::double_quote);
  EXPECT_EQ(quoting("user,item\n1,\"never closed\n"), TextQuoting::letters);
  EXPECT_EQ(quoting("1 \"2\"\n3 \"4\"\n"), TextQuoting::letters);
  EXPECT_EQ(quoting(""), TextQuoting::automatic);
  EXPECT_EQ(quoting("user,item\n1,6\" nails\n"), TextQuoting::automatic);
  const RatingTable plain = told("user,item\n1,2\n");
  EXPECT_EQ(told("user,item\n1,\"2\"\n", {}, &plain).text.quoting, TextQuoting::double_quote);
  EXPECT_EQ(told("user,item\n1,2\n", {}, &table).text.quoting, TextQuoting::double_quote);
}

// --item movie_id took movieId without a word, where pack-images fails.
TEST(RatingTable, TakesOnlyTheExactNameAndSuggestsANearOne) {
  RatingTableSpec spec;
  spec.item = "movie_id";
  EXPECT_EQ(
      error_of("userId,movieId,rating\n1,2,3\n", spec),
      "r.csv: line 1: no column \"movie_id\" for `item` among \"userId\", \"movieId\", \"rating\"; did you "
      "mean \"movieId\"?");
  spec.item = "Thing";
  spec.user = "buyer";
  EXPECT_EQ(
      error_of("buyer,thing\n1,2\n", spec),
      "r.csv: line 1: no column \"Thing\" for `item` among \"buyer\", \"thing\"; did you mean \"thing\"?");
  spec.user = "user_id";
  spec.item = "item_id:token";
  EXPECT_EQ(told("user_id:token\titem_id:token\n1\t2\n", spec).text.columns, (Columns{0, 1, {}, {}}));
}

// buyer,thing was packed as a rating.
TEST(RatingTable, AsksForTheHeaderWhereTextStandsAboveNumbers) {
  const std::string error =
      "r.csv: line 1: user \"buyer\" is no number, those of the next lines are; if it names a column give "
      "`header` "
      "yes, `user` and `item`, if it is an id `header` no";
  EXPECT_EQ(error_of("buyer,thing\n1,2\n3,4\n"), error);
  EXPECT_NE(error_of("alice,thing\nbob,2\ncarol,4\n").find("item \"thing\""), std::string::npos);
  EXPECT_EQ(error_of("alice,2\nbob,3\n4,5\n"), "none");
  EXPECT_EQ(error_of("buyer,thing\n"), "none");
  RatingTableSpec spec;
  spec.header = TableHeader::no;
  EXPECT_EQ(error_of("buyer,thing\n1,2\n", spec), "none");
  spec.header = TableHeader::yes;
  spec.user = "buyer";
  spec.item = "thing";
  EXPECT_EQ(error_of("buyer,thing\n1,2\n", spec), "none");
  EXPECT_EQ(error_of("buyer,thing,how\n1,2,\n1,3,5\n").find("r.csv: line 1: no column for `user`"), 0u);
  const RatingTable first = told("item,user\n1,2\n");
  EXPECT_THROW(static_cast<void>(told("buyer,thing\n1,2\n", {}, &first)), Error);
}

TEST(RatingTable, KnowsColumnsOfDatesAndLeavesThoseThatCannotBeRead) {
  EXPECT_EQ(told("user_id,business_id,stars,date\na,b,4,2014-01-03 17:05:09\n").text.columns,
            (Columns{0, 1, 2, 3}));
  EXPECT_EQ(told("reviewerID,asin,overall,unixReviewTime,reviewTime\na,b,4,1112486027,\"05 3, 2005\"\n")
                .text.columns,
            (Columns{0, 1, 2, 3}));
  const RatingTable table = told("user,item,rating,date\n1,2,3,\n1,3,3,Jan 3 2014\n");
  EXPECT_EQ(table.text.columns, (Columns{0, 1, 2, {}}));
  EXPECT_EQ(table.notices, std::vector<std::string>{
                               "column date is not used as time: \"Jan 3 2014\" is neither a number nor "
                               "YYYY-MM-DD nor YYYY-MM-DDTHH:MM:SS"});
  RatingTableSpec spec;
  spec.time = "date";
  EXPECT_EQ(told("user,item,rating,date\n1,2,3,Jan 3 2014\n", spec).text.columns, (Columns{0, 1, 2, 3}));
}

TEST(RatingTable, TakesAFourthColumnForTheTimeOnlyWhereItLooksLikeOne) {
  EXPECT_EQ(told("1,2,3,0.5\n").text.columns, (Columns{0, 1, 2, {}}));
  EXPECT_EQ(told("1,2,3,964982703.5\n").text.columns, (Columns{0, 1, 2, 3}));
}

TEST(RatingTable, RefusesDelimitersThatSplitNothing) {
  RatingTableSpec spec;
  spec.delimiter = "\"";
  EXPECT_EQ(error_of("1,2\n", spec), "`delimiter`: must have neither a quote nor a line end");
  spec.delimiter = kBlanks;
  spec.quote = TextQuoting::double_quote;
  EXPECT_EQ(error_of("1 2\n", spec), "`delimiter` blanks: not with `quote` double");
}

TEST(RatingTable, DoesAsToldAboutTheHeader) {
  RatingTableSpec spec;
  spec.header = TableHeader::no;
  EXPECT_EQ(told("user,item\n1,2\n", spec).text.header, "");
  spec.header = TableHeader::yes;
  spec.user.push_back('1');
  spec.item.push_back('2');
  EXPECT_EQ(told("5,6\n1,2\n", spec).text.header, "5,6");
}

TEST(RatingTable, SkipsWhatStandsBeforeTheHeader) {
  RatingTableSpec spec;
  spec.comment = "%";
  const RatingTable table = told("\xef\xbb\xbf% a, comment\n\nuser,item\n1,2\n", spec);
  EXPECT_EQ(table.text.header, "user,item");
}

TEST(RatingTable, ReadsQuotedHeaders) {
  RatingTableSpec spec;
  spec.quote = TextQuoting::double_quote;
  const RatingTable table = told("\"user,id\",\"item\",\"user\"\n\"x,y\",1,2\n", spec);
  EXPECT_EQ(table.text.columns, (Columns{2, 1, {}, {}}));
  EXPECT_EQ(table.column_names[0], "user,id");
}

TEST(RatingTable, TakesTheColumnsOfAnEarlierFileWhereThereIsNoHeader) {
  const RatingTable first = told("item,user,rating\n1,2,3\n");
  EXPECT_EQ(told("4,5,6\n", {}, &first).text, first.text);
  EXPECT_EQ(told("user,item,rating\n4,5,6\n", {}, &first).text.columns, (Columns{0, 1, 2, {}}));
}

TEST(RatingTable, UsersAndItemsOfAThirdFileWereSwapped) {
  const RatingTable first = told("movieId,userId,rating,a,b\n1,2,3,9,9\n");
  const RatingTable second = told("4,5,6,9,9\n", {}, &first);
  const RatingTable third = told("7,8,9,9,9\n", {}, &second);
  EXPECT_EQ(third.text.columns, (Columns{1, 0, 2, {}}));
  EXPECT_EQ(third.text, first.text);
}

TEST(RatingTable, ColumnsOfTimesAndDecimalsWereTakenForIds) {
  const std::string gowalla =
      "0\t2010-10-19T23:55:27Z\t30.23\t-97.79\t22847\n0\t2010-10-18T22:17:43Z\t30.26\t-97.7\t42\n";
  EXPECT_EQ(error_of(gowalla),
            "r.csv: line 1: column 2 stands where the item usually does, but holds times such as "
            "\"2010-10-19T23:55:27Z\"; give the numbers of the columns: `user`, `item`, `value`, `time`");
  EXPECT_NE(error_of("74,-7.82,8.79\n100,4,9.5\n").find("holds decimals such as \"-7.82\""),
            std::string::npos);
  RatingTableSpec given{.user = "1", .item = "5"};
  EXPECT_NE(error_of(gowalla, given).find("give `value` and `time`"), std::string::npos);
  given.value = "none";
  given.time = "2";
  EXPECT_EQ(told(gowalla, given).text.columns, (Columns{0, 4, {}, 1}));
}

TEST(RatingTable, ColumnsOfAWideTableWithoutAHeaderWereTakenByOrder) {
  const std::string text = "1,7,99,5,880000000\n2,8,98,4,880000001\n";
  const std::string error = error_of(text);
  EXPECT_NE(error.find("r.csv: line 1: there is no header, and 5 columns have no usual order"),
            std::string::npos)
      << error;
  EXPECT_NE(error.find("give `user`, `item`, `value` and `time` by number; `value` and `time` may be none"),
            std::string::npos)
      << error;
  RatingTableSpec spec{.user = "1", .item = "2"};
  EXPECT_NE(error_of(text, spec).find("usual order: give `value` and `time` by number"), std::string::npos);
  spec.value = "none";
  EXPECT_EQ(told(text, spec).text.columns.value, std::nullopt);
  spec.value = "4";
  EXPECT_EQ(told(text, spec).text.columns.value, 3u);
  EXPECT_EQ(told("user,item,rating,a,b\n1,7,5,9,9\n").text.columns.value, 2u);
}

TEST(RatingTable, ADelimiterAtTheEndsOfLinesMadeAColumn) {
  EXPECT_EQ(told("1,7,5,880000000,\n2,8,4,880000001,\n").text.columns, (Columns{0, 1, 2, 3}));
  EXPECT_NE(error_of("1,7,5,880000000,\n2,8,4,880000001,9\n"), "none");
}

TEST(RatingTable, LabelsAndClicksOfZeroWerePositives) {
  EXPECT_EQ(told("user_id:token\titem_id:token\tlabel:float\n1\t2\t0\n").text.columns,
            (Columns{0, 1, 2, {}}));
  EXPECT_EQ(told("user_id,video_id,date,time_ms,is_click\n1,2,20220408,1649352471373,0\n").text.columns,
            (Columns{0, 1, 4, 3}));
}

TEST(RatingTable, SomeFilesOfOtherProgramsHadNoHint) {
  EXPECT_EQ(error_of("sep=;\nuser;item\n1;2\n"),
            "r.csv: line 1: \"sep=;\" is Excel's and no header; `comment` sep= skips it");
  EXPECT_EQ(told("user,item\n5.0,7\n6.0,8\n").notices,
            std::vector<std::string>{
                "users such as \"5.0\" went through floats and are other ids than whole numbers"});
}

}  // namespace
}  // namespace chunkhit
