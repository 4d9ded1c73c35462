#include "base/csv_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "chunkhit/error.h"

namespace chunkhit {
namespace {

using Rows = std::vector<std::vector<std::string>>;

/// Gives bytes in pieces, so that rows are cut in all positions.
ByteSource pieces_of(std::string_view text, std::size_t piece_bytes) {
  return [text, piece_bytes](MutableBytes out) mutable {
    const std::size_t count = std::min({text.size(), piece_bytes, out.size()});
    std::copy_n(text.begin(), count, out.begin());
    text.remove_prefix(count);
    return count;
  };
}

Rows rows_of(std::string_view text, char delimiter = ',', std::size_t piece_bytes = 1 << 16) {
  CsvReader table("t.csv", pieces_of(text, piece_bytes), delimiter);
  std::vector<std::string_view> fields;
  Rows rows;
  while (table.next_row(fields)) rows.emplace_back(fields.begin(), fields.end());
  return rows;
}

std::string error_of(std::string_view text) {
  try {
    (void)rows_of(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_data);
    return error.what();
  }
  return "none";
}

char delimiter_of(std::string_view text) {
  return CsvReader("t.csv", pieces_of(text, 1 << 16), 0).delimiter();
}

TEST(CsvReader, SplitsLinesAtCommas) {
  EXPECT_EQ(rows_of("a,b\n1,2\n"), (Rows{{"a", "b"}, {"1", "2"}}));
  EXPECT_EQ(rows_of("a,,c\n,\n"), (Rows{{"a", "", "c"}, {"", ""}}));
}

TEST(CsvReader, TakesCrLfAndAMissingLastLineEnd) {
  EXPECT_EQ(rows_of("a,b\r\n1,2"), (Rows{{"a", "b"}, {"1", "2"}}));
  EXPECT_EQ(rows_of("a,b\r\n1,2\r"), (Rows{{"a", "b"}, {"1", "2"}}));
  EXPECT_EQ(rows_of("a,b\r\n1,"), (Rows{{"a", "b"}, {"1", ""}}));
}

TEST(CsvReader, KeepsACrAloneAsData) { EXPECT_EQ(rows_of("a\rb,c\n"), (Rows{{"a\rb", "c"}})); }

TEST(CsvReader, SkipsBlankLinesButNotQuotedEmptyFields) {
  EXPECT_EQ(rows_of("\n\r\na\n\n\"\"\n\n"), (Rows{{"a"}, {""}}));
}

TEST(CsvReader, UndoesQuotes) {
  EXPECT_EQ(rows_of("\"a,b\",\"say \"\"hi\"\"\"\n"), (Rows{{"a,b", "say \"hi\""}}));
  EXPECT_EQ(rows_of("\"line\none\",\"two\r\n\"\r\nx,\"\"\"\"\n"),
            (Rows{{"line\none", "two\r\n"}, {"x", "\""}}));
}

TEST(CsvReader, KeepsAQuoteInsideAPlainField) {
  EXPECT_EQ(rows_of("5\" nail,b\n"), (Rows{{"5\" nail", "b"}}));
}

TEST(CsvReader, SkipsAByteOrderMark) {
  EXPECT_EQ(rows_of("\xef\xbb\xbf\"a\",b\n"), (Rows{{"a", "b"}}));
  EXPECT_EQ(rows_of("\xef\xbb\xbf"), Rows{});
}

TEST(CsvReader, GivesNoRowsForNothing) {
  EXPECT_EQ(rows_of(""), Rows{});
  EXPECT_EQ(rows_of("\n\n\r\n"), Rows{});
}

TEST(CsvReader, GivesTheSameRowsHoweverTheBytesCome) {
  const std::string text =
      "\xef\xbb\xbf"
      "a,\"b\"\"c\"\r\n\r\n\"d\r\ne\",f\rg\r\nh,\"\"\n";
  const Rows whole = rows_of(text);
  EXPECT_EQ(whole, (Rows{{"a", "b\"c"}, {"d\r\ne", "f\rg"}, {"h", ""}}));
  for (std::size_t piece = 1; piece < text.size(); ++piece)
    EXPECT_EQ(rows_of(text, ',', piece), whole) << piece;
}

TEST(CsvReader, CutsRowsAtNoBufferEnd) {
  std::string text;
  Rows expected;
  for (int row = 0; text.size() < (1 << 20); ++row) {
    const std::string number = std::to_string(row);
    text += number + ",\"" + number + "\"\"\n\"\r\n";
    expected.push_back({number, number + "\"\n"});
  }
  EXPECT_EQ(rows_of(text, ',', 1000), expected);
}

TEST(CsvReader, GuessesATabOnlyWithoutACommaInTheHeader) {
  EXPECT_EQ(delimiter_of("a\tb\n1,2\n"), '\t');
  EXPECT_EQ(delimiter_of("\r\n\na\tb\n1,2\n"), '\t');
  EXPECT_EQ(delimiter_of("a\tb,c\n"), ',');
  EXPECT_EQ(delimiter_of("\"a,b\"\tc\n"), '\t');
  EXPECT_EQ(delimiter_of("a\n1\t2\n"), ',');
  EXPECT_EQ(delimiter_of(""), ',');
}

TEST(CsvReader, TakesAGivenDelimiter) { EXPECT_EQ(rows_of("a;\"b;c\"\n", ';'), (Rows{{"a", "b;c"}})); }

TEST(CsvReader, RefusesAQuoteOrLineEndAsDelimiter) {
  for (const char wrong : {'"', '\n', '\r'}) EXPECT_THROW((void)rows_of("a\n", wrong), Error);
}

TEST(CsvReader, NamesTheLineWhereAnOpenQuoteBegan) {
  EXPECT_EQ(error_of("a,b\n\"x\ny\",1\nc,\"d\ne,f\n"),
            "t.csv: line 4, column 3: the quote that opens here is never closed");
}

TEST(CsvReader, RefusesTextBehindAClosingQuote) {
  EXPECT_EQ(
      error_of("a\n\"b\"c\n"),
      "t.csv: line 2, column 4: text behind a closing quote; a quote inside a quoted field must be doubled");
  EXPECT_NE(error_of("\"a\" ,b\n"), "none");
  EXPECT_NE(error_of("\"a\"\rb\n"), "none");
}

TEST(CsvReader, NamesThePlaceOfANulByte) {
  using namespace std::string_view_literals;
  EXPECT_EQ(error_of("a,b\nc,d\0e\n"sv), "t.csv: line 2, column 4: a NUL byte; is this a text file?");
  EXPECT_EQ(error_of("a,b\n\"c\nd\0e\"\n"sv), "t.csv: line 3, column 2: a NUL byte; is this a text file?");
}

TEST(CsvReader, RecognisesUtf16AndUtf32) {
  using namespace std::string_view_literals;
  const std::string expected =
      "t.csv: line 1, column 1: looks like UTF-16 or UTF-32; save the table as UTF-8";
  for (const auto wide :
       {"\xff\xfe"
        "a\0,\0"sv,
        "\xfe\xff\0a"sv, "a\0,\0"sv, "\0a\0,"sv, "\xff\xfe\0\0a\0\0\0"sv, "\0\0\xfe\xff\0\0\0a"sv})
    EXPECT_EQ(error_of(wide), expected);
}

TEST(CsvReader, TakesAFieldOfOneMebibyteAndNoMore) {
  const std::string most(CsvReader::kMaxFieldBytes, 'x');
  EXPECT_EQ(rows_of("a\n" + most + ",b\n"), (Rows{{"a"}, {most, "b"}}));
  EXPECT_EQ(rows_of("a\n\"" + most + "\",b\n"), (Rows{{"a"}, {most, "b"}}));
  EXPECT_EQ(error_of("a\n" + most + "x,b\n"),
            "t.csv: line 2, column 1: a field of more than 1 MiB begins here");
  EXPECT_EQ(error_of("a\nb,\"" + most + "x\"\n"),
            "t.csv: line 2, column 3: a field of more than 1 MiB begins here; is its quote closed?");
}

TEST(CsvReader, StopsAtAnEndlessFieldOrRowWithoutHoldingIt) {
  std::size_t given = 0;
  const auto endless = [&](std::string_view pattern) {
    given = 0;
    return [&given, pattern](MutableBytes out) {
      for (std::size_t at = 0; at < out.size(); ++at)
        out[at] = static_cast<std::uint8_t>(pattern[at % pattern.size()]);
      given += out.size();
      return out.size();
    };
  };
  std::vector<std::string_view> fields;
  CsvReader one_field("t.csv", endless("x"), ',');
  EXPECT_THROW((void)one_field.next_row(fields), Error);
  EXPECT_LE(given, 4 * CsvReader::kMaxFieldBytes);
  CsvReader one_row("t.csv", endless("x,"), ',');
  EXPECT_THROW((void)one_row.next_row(fields), Error);
  EXPECT_LE(given, 2 * CsvReader::kMaxRowBytes);
}

TEST(CsvReader, CountsLinesThroughBlankAndQuotedOnes) {
  CsvReader table("t.csv", pieces_of("a\n\n\"b\nc\"\nd\n", 3), ',');
  std::vector<std::string_view> fields;
  std::vector<std::uint64_t> lines;
  while (table.next_row(fields)) lines.push_back(table.line());
  EXPECT_EQ(lines, (std::vector<std::uint64_t>{1, 3, 5}));
}

}  // namespace
}  // namespace chunkhit
