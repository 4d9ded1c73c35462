#include "ratings/rating_format.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "chunkhit/error.h"

namespace chunkhit {
namespace {

using namespace std::string_view_literals;

RatingFormat told(std::string_view text) { return detect_rating_format({text, true, {}}, "file"); }

std::string error_of(std::string_view text) {
  try {
    (void)told(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_data);
    return error.what();
  }
  return "none";
}

TEST(RatingFormat, IsTextForEveryTable) {
  for (const char* text :
       {"userId,movieId,rating,timestamp\n1,2,3.5,1112486027\n", "1::1193::5::978300760\n",
        "196\t242\t3\t881250949\n186\t302\t3\t891717742\n",
        "user_id:token\titem_id:token\trating:float\n1\t2\t3\n", "1 2 5\n1 3 4\n", "", "\n\n", "u i\n"})
    EXPECT_EQ(told(text), RatingFormat::text) << text;
}

TEST(RatingFormat, IsUserItemsForIntegersOfUnequalCount) {
  EXPECT_EQ(told("0 1 2 3\n1 4\n2\n"), RatingFormat::user_items);
  EXPECT_EQ(told("0 1 2\n1 4 x\n2\n"), RatingFormat::text);
  EXPECT_EQ(told("0\t1\t2\n1\t4\n"), RatingFormat::text);
}

// Two ratings of ten were packed: user 0 rated item 1 with 2, user 1 rated item 6 with 7.
TEST(RatingFormat, IsUserItemsForMoreIntegersThanATableHasColumns) {
  EXPECT_EQ(told("0 1 2 3 4 5\n1 6 7 8 9 10\n"), RatingFormat::user_items);
  EXPECT_EQ(told("0 1 2 3\n1 6 7 8\n"), RatingFormat::text);
  EXPECT_EQ(told("u i a b c\n0 1 2 3 4\n"), RatingFormat::text);
}

TEST(RatingFormat, MayBeUserItemsWhereEachUserHasALineAndAllAreEquallyLong) {
  const auto may_be = [](std::string_view text) { return may_be_user_items({text, true, {}}); };
  EXPECT_TRUE(may_be("0 1 2 3\n1 6 7 8\n"));
  EXPECT_TRUE(may_be("0 1 2\n1 6 7\n5 1 7\n"));
  EXPECT_FALSE(may_be("0 1\n1 6\n"));
  EXPECT_FALSE(may_be("0 1 2\n0 6 7\n"));
  EXPECT_FALSE(may_be("5 1 2\n0 6 7\n5 2 7\n"));
  EXPECT_FALSE(may_be("0 1 2\n"));
  EXPECT_FALSE(may_be("0\t1\t2\n1\t6\t7\n"));
  EXPECT_FALSE(may_be("0 1 2.5\n1 6 7\n"));
}

// Lines of users that did not ascend were read as a table: two of three items were dropped without a word.
TEST(RatingFormat, MayBeUserItemsInAnyOrderOfUsers) {
  EXPECT_TRUE(may_be_user_items({"3 10 11\n1 10 12\n2 5 7\n", true, {}}));
}

TEST(RatingFormat, IgnoresALineThatIsCutOff) {
  EXPECT_EQ(detect_rating_format({"1 2 3\n4 5 6\n7 8", false, {}}, "file"), RatingFormat::text);
  EXPECT_EQ(detect_rating_format({"1 2 3\n4 5 6\n7 8", true, {}}, "file"), RatingFormat::user_items);
}

TEST(RatingFormat, IsNetflixForAnItemAndAColon) {
  EXPECT_EQ(told("1:\n1488844,3,2005-09-06\n"), RatingFormat::netflix);
  EXPECT_EQ(told("1:\r\n1488844,3,2005-09-06\r\n"), RatingFormat::netflix);
}

TEST(RatingFormat, IsMatrixMarketForItsBanner) {
  EXPECT_EQ(told("%%MatrixMarket matrix coordinate real general\n1 1 1\n"), RatingFormat::matrix_market);
  EXPECT_EQ(told("%matrixmarket matrix array integer general\n"), RatingFormat::matrix_market);
  EXPECT_EQ(told("%%Matrix\n1 2 3\n"), RatingFormat::text);
}

TEST(RatingFormat, IsSvmlightForIndicesWithValues) {
  EXPECT_EQ(told("1 3:0.5 7:2 # note\n"), RatingFormat::svmlight);
  EXPECT_EQ(told("# made by a program\n-1 qid:3 1:1\n"), RatingFormat::svmlight);
  EXPECT_EQ(told("1,2 3:0.5\n"), RatingFormat::svmlight);
  EXPECT_EQ(told("3:0.5 4:1\n"), RatingFormat::svmlight);
  EXPECT_EQ(told("a:b c:d\n"), RatingFormat::text);
  EXPECT_EQ(told("0 \n# a comment\n1\n1 3:0.5\n"), RatingFormat::svmlight);
  EXPECT_EQ(told("5\n1 2 3\n"), RatingFormat::user_items);
  EXPECT_EQ(told("5\n6\n"), RatingFormat::text);
}

TEST(RatingFormat, IsToldByTheBytesOfBinaryFiles) {
  EXPECT_EQ(told("PK\x03\x04rest"), RatingFormat::npz);
  EXPECT_EQ(told("\x89HDF\r\n\x1a\n\0\0"sv), RatingFormat::hdf5);
  EXPECT_EQ(told(std::string(512, '\0') + "\x89HDF\r\n\x1a\n"), RatingFormat::hdf5);
}

TEST(RatingFormat, IsSaidByTheEndOfANameForAllButTables) {
  EXPECT_EQ(rating_format_of_name("/a/ratings.mtx"), RatingFormat::matrix_market);
  EXPECT_EQ(rating_format_of_name("ratings.MTX.gz"), RatingFormat::matrix_market);
  EXPECT_EQ(rating_format_of_name("a.svm.zst"), RatingFormat::svmlight);
  EXPECT_EQ(rating_format_of_name("a.libsvm"), RatingFormat::svmlight);
  EXPECT_EQ(rating_format_of_name("a.npz"), RatingFormat::npz);
  EXPECT_EQ(rating_format_of_name("reviews.json.gz"), RatingFormat::json_lines);
  EXPECT_EQ(rating_format_of_name("reviews.JSONL"), RatingFormat::json_lines);
  EXPECT_EQ(rating_format_of_name("reviews.ndjson.zst"), RatingFormat::json_lines);
  EXPECT_EQ(rating_format_of_name("cells.h5ad"), RatingFormat::hdf5);
  for (const char* name :
       {"ratings.csv", "u.data", "ratings.dat", "a.inter", "stdin", "mtx", "a.gz", "npz.txt"})
    EXPECT_EQ(rating_format_of_name(name), std::nullopt) << name;
}

TEST(RatingFormat, DetectsJson) {
  EXPECT_EQ(told("{\"user\": 1}\n"), RatingFormat::json_lines);
  EXPECT_EQ(told("\n  {\"user\": 1}\n"), RatingFormat::json_lines);
  EXPECT_EQ(told("[{\"user\": 1}]"), RatingFormat::json_lines);
}

TEST(RatingFormat, NamesWhatAFileOfBytesIsNot) {
  try {
    static_cast<void>(detect_rating_format({std::string_view("a\0b", 3), true, ""}, "a.npz"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("nor npz, as its name says"), std::string::npos) << error.what();
  }
}

TEST(RatingFormat, RefusesWhatIsKnownAndNotRead) {
  EXPECT_EQ(error_of("\xff\xfe"
                     "1\0"sv),
            "file: looks like UTF-16; save the table as UTF-8");
  EXPECT_EQ(error_of("1,\0\n"sv),
            "file: holds NUL bytes, which no text does, and is of no kind that is known");
  EXPECT_EQ(error_of("1,2\r3,4\r"), "file: lines end in CR alone; expected LF or CRLF");
}

TEST(RatingFormat, CountsAtTheBeginningOfLinesWereUsers) {
  EXPECT_EQ(
      error_of("2 10 11\n3 10 12 13\n1 14\n"),
      "file: each line begins with the count of its items, not with a user; write the line's number there: "
      "awk '{$1 = NR; print}' FILE | pack-sparse - ...; `format` user-items takes it as the user");
  EXPECT_EQ(told("2 10 11\n3 10 12 13\n4 14\n"), RatingFormat::user_items);
}

TEST(RatingFormat, FilesOfOtherProgramsHadNoName) {
  EXPECT_NE(error_of("PAR1\x15\0"sv).find("is Parquet, which is not read; write it as CSV to stdin"),
            std::string::npos);
  EXPECT_NE(error_of("\x93NUMPY\1\0"sv).find("is NumPy's npy"), std::string::npos);
  EXPECT_NE(error_of("PK\x03\x04..[Content_Types].xml").find("is Excel's xlsx"), std::string::npos);
  EXPECT_NE(error_of("a" + std::string(256, '\0') + "ustar").find("is a tar"), std::string::npos);
}

}  // namespace
}  // namespace chunkhit
