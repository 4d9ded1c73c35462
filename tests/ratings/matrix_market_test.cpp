#include "ratings/matrix_market.h"

#include <gtest/gtest.h>

#include "chunkhit/error.h"
#include "support/read_ratings.h"
#include "support/temporary_folder.h"

namespace chunkhit {
namespace {

using Texts = std::vector<std::string>;

class MatrixMarket : public testing::Test {
 protected:
  ReadRatings read(const std::string& text, bool transpose = false) {
    MatrixMarketReader reader(folder_.write("a.mtx", text), {.transpose = transpose});
    return read_all(reader);
  }
  std::string error(const std::string& text) {
    try {
      static_cast<void>(read(text));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_data);
      return std::string(error.what()).substr(folder_.path("a.mtx").size());
    }
    return "none";
  }
  TemporaryFolder folder_;
};

TEST_F(MatrixMarket, ReadsCoordinates) {
  const ReadRatings all = read("%%MatrixMarket matrix coordinate real general\n3 4 2\n1 4 0.5\n3 2 -2e1\n");
  EXPECT_EQ(all.ratings, Texts({"1 4 0.5", "3 2 -20"}));
  EXPECT_EQ(all.facts.user_count, 3u);
  EXPECT_EQ(all.facts.item_count, 4u);
}

TEST_F(MatrixMarket, TakesWhatProgramsReallyWrite) {
  const std::string odd =
      "\xef\xbb\xbf%MATRIXMARKET Matrix Coordinate DOUBLE General\r\n\r\n% a comment\r\n  % another\r\n"
      "\r\n 2\t2 2 \r\n\r\n%\r\n  1 1\t+5\r\n\r\n2 2 1.5E0 ";
  EXPECT_EQ(read(odd).ratings, Texts({"1 1 5", "2 2 1.5"}));
}

TEST_F(MatrixMarket, ExpandsASymmetricMatrixWithoutZerosBesideTheDiagonal) {
  EXPECT_EQ(read("%%MatrixMarket matrix coordinate integer symmetric\n2 2 2\n1 1 3\n2 1 4\n").ratings,
            Texts({"1 1 3", "2 1 4", "1 2 4"}));
}

TEST_F(MatrixMarket, ExpandsASkewMatrix) {
  EXPECT_EQ(read("%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n2 1 4\n").ratings,
            Texts({"2 1 4", "1 2 -4"}));
  EXPECT_EQ(read("%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n2 2 4\n").bad_lines,
            Texts({"3:3 expected nothing on the diagonal of a skew-symmetric matrix, found \"2\""}));
}

TEST_F(MatrixMarket, GivesPatternsTheValueOne) {
  EXPECT_EQ(read("%%MatrixMarket matrix coordinate pattern symmetric\n2 2 1\n2 1\n").ratings,
            Texts({"2 1 1", "1 2 1"}));
}

TEST_F(MatrixMarket, KeepsZerosThatAreWritten) {
  EXPECT_EQ(read("%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 0\n").ratings, Texts({"1 1 0"}));
}

TEST_F(MatrixMarket, ReadsArraysByColumnsWithoutTheirZeros) {
  EXPECT_EQ(read("%%MatrixMarket matrix array real general\n2 3\n1\n2\n0\n4\n5\n6\n").ratings,
            Texts({"1 1 1", "2 1 2", "2 2 4", "1 3 5", "2 3 6"}));
  EXPECT_EQ(read("%%MatrixMarket matrix array real symmetric\n2 2\n1\n2\n3\n").ratings,
            Texts({"1 1 1", "2 1 2", "1 2 2", "2 2 3"}));
  EXPECT_EQ(read("%%MatrixMarket matrix array real skew-symmetric\n3 3\n1\n2\n3\n").ratings,
            Texts({"2 1 1", "1 2 -1", "3 1 2", "1 3 -2", "3 2 3", "2 3 -3"}));
}

TEST_F(MatrixMarket, Transposes) {
  const ReadRatings all = read("%%MatrixMarket matrix coordinate real general\n3 4 1\n1 4 5\n", true);
  EXPECT_EQ(all.ratings, Texts({"4 1 5"}));
  EXPECT_EQ(all.facts.user_count, 4u);
  EXPECT_EQ(all.facts.item_count, 3u);
}

TEST_F(MatrixMarket, NamesBadLines) {
  const std::string head = "%%MatrixMarket matrix coordinate real general\n2 3 1\n";
  const auto bad = [&](const char* line) { return read(head + line + "\n").bad_lines; };
  EXPECT_EQ(bad("0 1 5"), Texts({"3:1 row: expected 1 to 2, found \"0\""}));
  EXPECT_EQ(bad("2 4 5"), Texts({"3:3 column: expected 1 to 3, found \"4\""}));
  EXPECT_EQ(bad("1 18446744073709551617 5"),
            Texts({"3:3 column: expected 1 to 3, found \"18446744073709551617\""}));
  EXPECT_EQ(bad("1.0 1 5"), Texts({"3:1 row: expected 1 to 2, found \"1.0\""}));
  EXPECT_EQ(bad("1"), Texts({"3:2 column: expected 1 to 3, found nothing"}));
  EXPECT_EQ(bad("1 1"), Texts({"3:4 value: expected a finite number, found nothing"}));
  EXPECT_EQ(bad(" 1 1  nan"), Texts({"3:7 value: expected a finite number, found \"nan\""}));
  EXPECT_EQ(bad("1 1 5 0"), Texts({"3:7 expected the end of the line, found \"0\""}));
  EXPECT_EQ(bad("1 1 5 % no"), Texts({"3:7 expected the end of the line, found \"%\""}));
}

TEST_F(MatrixMarket, NoticesACountThatLies) {
  const std::string head = "%%MatrixMarket matrix coordinate real general\n2 2 2\n";
  EXPECT_EQ(error(head + "1 1 5\n"), ":3: expected 2 entries, got 1");
  EXPECT_EQ(error(head + "1 1 5\n1 2 5\n2 2 5\n"), ":5: expected 2 entries, found more");
  EXPECT_EQ(error("%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n"),
            ":5: expected 4 entries, got 3");
}

TEST_F(MatrixMarket, RefusesOtherBannersAndSizes) {
  EXPECT_EQ(error(""), ":0: is empty, expected \"%%MatrixMarket matrix ...\"");
  EXPECT_EQ(error("1 1 5\n"), ":1:1: expected \"%%MatrixMarket matrix ...\", found \"1 1 5\"");
  EXPECT_EQ(error("%%MatrixMarket vector coordinate real general\n"),
            ":1:16: expected matrix, found \"vector\"");
  EXPECT_EQ(error("%%MatrixMarket matrix coordinate complex general\n"),
            ":1:34: complex values are no ratings; write the real part or the magnitude");
  EXPECT_EQ(error("%%MatrixMarket matrix coordinate real hermitian\n"),
            ":1:39: hermitian matrices are complex: no ratings");
  EXPECT_EQ(error("%%MatrixMarket matrix array pattern general\n"), ":1: an array cannot be a pattern");
  EXPECT_EQ(error("%%MatrixMarket matrix coordinate real general\n% nothing more"),
            ":2: ends before the size line");
  EXPECT_EQ(error("%%MatrixMarket matrix coordinate real symmetric\n2 3 1\n"),
            ":2: a symmetric matrix has as many rows as columns, found 2 and 3");
  EXPECT_EQ(error("%%MatrixMarket matrix coordinate real general\n-2 3 1\n"),
            ":2:1: expected the number of rows, found \"-2\"");
  EXPECT_EQ(error("%%MatrixMarket matrix coordinate real general\n2 3 1 7\n"),
            ":2:7: expected the end of the size line, found \"7\"");
  EXPECT_EQ(error("%%MatrixMarket matrix array real general\n9223372036854775807 9223372036854775807\n"),
            ":2: an array of so many values cannot be");
}

TEST_F(MatrixMarket, GenesBecameUsersWhereNamesOfCellsStandBesideIt) {
  const std::string text = "%%MatrixMarket matrix coordinate integer general\n2 3 1\n2 3 5\n";
  folder_.write("barcodes.tsv", "AAA-1\nAAC-1\nAAG-1\n");
  EXPECT_EQ(read(text).ratings, Texts({"AAG-1 2 5"}));
  folder_.write("genes.tsv", "ENSG1\tA\nENSG2\tB\n");
  EXPECT_EQ(read(text).ratings, Texts({"AAG-1 ENSG2 5"}));
  EXPECT_EQ(read(text, true).ratings, Texts({"3 2 5"}));
  const std::string cells_in_rows = "%%MatrixMarket matrix coordinate integer general\n3 2 1\n3 2 5\n";
  EXPECT_EQ(read(cells_in_rows).ratings, Texts({"AAG-1 ENSG2 5"}));
  folder_.write("genes.tsv", "ENSG1\n");
  EXPECT_NE(error(text).find("genes.tsv 1 name; `transpose` takes its columns"), std::string::npos)
      << error(text);
}

TEST_F(MatrixMarket, GenesBecameUsersWhereNamesHaveAPrefix) {
  const std::string text = "%%MatrixMarket matrix coordinate integer general\n2 3 1\n2 3 5\n";
  folder_.write("GSM1_barcodes.tsv", "AAA-1\nAAC-1\nAAG-1\n");
  folder_.write("X.mtx_cols", "c1\nc2\nc3\n");
  folder_.write("X.mtx_rows", "g1\tg1\ng2\tg2\n");
  RatingBlock block;
  MatrixMarketReader tenx(folder_.write("GSM1_matrix.mtx", text), {});
  ASSERT_TRUE(tenx.next(block));
  EXPECT_EQ(block.users.texts[0], "AAG-1");
  MatrixMarketReader atlas(folder_.write("X.mtx", text), {});
  ASSERT_TRUE(atlas.next(block));
  EXPECT_EQ(block.users.texts[0], "c3");
  EXPECT_EQ(block.items.texts[0], "g2");
}

TEST_F(MatrixMarket, GenesBecameUsersWhereTheirNamesStandBesideItAlone) {
  const std::string head = "%%MatrixMarket matrix coordinate integer general\n";
  folder_.write("GSM1_features.tsv", "ENSG1\tA\nENSG2\tB\n");
  folder_.write("X.mtx_rows", "ENSG1\nENSG2\n");
  for (const char* name : {"GSM1_matrix.mtx", "X.mtx"}) {
    RatingBlock block;
    MatrixMarketReader reader(folder_.write(name, head + "2 3 1\n2 3 5\n"), {});
    ASSERT_TRUE(reader.next(block));
    EXPECT_EQ(block.users.numbers, std::vector<std::int64_t>{3});
    EXPECT_EQ(block.items.texts[0], "ENSG2");
    ASSERT_EQ(reader.facts().notices.size(), 1u);
    EXPECT_NE(reader.facts().notices[0].find("users are its columns, by number, items by"), std::string::npos)
        << reader.facts().notices[0];
  }
  // Rows that are cells stay users, and a matrix of another name has nothing to do with it.
  RatingBlock block;
  MatrixMarketReader rows(folder_.write("GSM1_matrix.mtx", head + "3 2 1\n3 2 5\n"), {});
  ASSERT_TRUE(rows.next(block));
  EXPECT_EQ(block.users.numbers, std::vector<std::int64_t>{3});
  folder_.write("features.tsv", "ENSG1\tA\nENSG2\tB\n");
  EXPECT_EQ(read(head + "2 3 1\n2 3 5\n").ratings, Texts({"2 3 5"}));
}

TEST_F(MatrixMarket, NamesOfAnotherMatrixWereAnError) {
  folder_.write("features.tsv", "f1\nf2\n");
  folder_.write("empty_features.tsv", "");
  for (const char* name : {"matrix.mtx", "empty_matrix.mtx"}) {
    const std::string text = "%%MatrixMarket matrix coordinate integer general\n4 3 1\n2 3 5\n";
    RatingBlock block;
    MatrixMarketReader reader(folder_.write(name, text), {});
    ASSERT_TRUE(reader.next(block));
    EXPECT_EQ(block.users.numbers, std::vector<std::int64_t>{2});
    ASSERT_EQ(reader.facts().notices.size(), 1u);
    EXPECT_NE(reader.facts().notices[0].find("features.tsv is ignored: "), std::string::npos)
        << reader.facts().notices[0];
  }
}

TEST_F(MatrixMarket, GivesBlocksOfAsManyRatingsAsABlockHas) {
  const std::size_t count = 2 * kBlockRatings + 1000;
  std::string text = "%%MatrixMarket matrix coordinate pattern general\n3 1 " + std::to_string(count) + "\n";
  for (std::size_t i = 0; i < count; ++i) text += "3 1\n";
  MatrixMarketReader reader(folder_.write("a.mtx", text), {});
  RatingBlock block;
  std::vector<std::size_t> sizes;
  std::uint64_t text_bytes = 0;
  while (reader.next(block)) {
    sizes.push_back(block.size());
    text_bytes += block.text_bytes;
    EXPECT_EQ(block.users.numbers, std::vector<std::int64_t>{3});
    EXPECT_TRUE(block.values.empty());
  }
  EXPECT_EQ(text_bytes, text.size());
  EXPECT_EQ(reader.text_bytes(), text.size());
  EXPECT_EQ(sizes, std::vector<std::size_t>({kBlockRatings, kBlockRatings, 1000}));
}

}  // namespace
}  // namespace chunkhit
