#include "decode/matrix_market_header.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>

#include "base/words.h"
#include "decode/text_fields.h"

namespace chunkhit {
namespace {

constexpr std::size_t kMaxShownBytes = 40;

std::string lower(std::string_view text) {
  std::string copy(text);
  for (char& c : copy)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return copy;
}

std::string shown(std::string_view text) {
  return text.empty() ? "nothing" : '"' + printable_text(text.substr(0, kMaxShownBytes)) + '"';
}

/// Reads one word of the banner; `expected` lists the words that there are.
std::string read_word(const LineReader& lines, FieldCursor& fields, std::span<const std::string_view> words,
                      const char* expected) {
  std::string word = lower(fields.next());
  if (std::ranges::find(words, word) == words.end())
    lines.fail(fields.column(), std::string("expected ") + expected + ", found " + shown(word));
  return word;
}

void read_field(const LineReader& lines, FieldCursor& fields, MarketHeader& header) {
  // "double" is no word of the format, "unsigned-integer" is scipy's; both are in the wild.
  constexpr std::array<std::string_view, 6> kWords{"real",    "double", "integer", "unsigned-integer",
                                                   "pattern", "complex"};
  const std::string word = read_word(lines, fields, kWords, "real, integer or pattern");
  if (word == "complex")
    lines.fail(fields.column(), "complex values are no ratings; write the real part or the magnitude");
  header.is_pattern = word == "pattern";
}

void read_symmetry(const LineReader& lines, FieldCursor& fields, MarketHeader& header) {
  constexpr std::array<std::string_view, 4> kWords{"general", "symmetric", "skew-symmetric", "hermitian"};
  const std::string word = read_word(lines, fields, kWords, "general, symmetric or skew-symmetric");
  if (word == "hermitian") lines.fail(fields.column(), "hermitian matrices are complex: no ratings");
  if (word == "symmetric") header.symmetry = MarketSymmetry::symmetric;
  if (word == "skew-symmetric") header.symmetry = MarketSymmetry::skew;
}

MarketHeader read_banner(const LineReader& lines, std::string_view line) {
  FieldCursor fields(line);
  const std::string mark = lower(fields.next());
  if (mark != "%%matrixmarket" && mark != "%matrixmarket")  // some programs write one %
    lines.fail(fields.column(), "expected \"%%MatrixMarket matrix ...\", found " + shown(line));
  MarketHeader header;
  constexpr std::array<std::string_view, 1> kObjects{"matrix"};
  static_cast<void>(read_word(lines, fields, kObjects, "matrix"));
  constexpr std::array<std::string_view, 2> kFormats{"coordinate", "array"};
  header.is_dense = read_word(lines, fields, kFormats, "coordinate or array") == "array";
  read_field(lines, fields, header);
  read_symmetry(lines, fields, header);
  if (const auto rest = fields.next(); !rest.empty())
    lines.fail(fields.column(), "expected the end of the banner, found " + shown(rest));
  if (header.is_pattern && header.is_dense) lines.fail("an array cannot be a pattern");
  if (header.is_pattern && header.symmetry == MarketSymmetry::skew)
    lines.fail("a pattern cannot be skew-symmetric");
  return header;
}

std::uint64_t read_count(const LineReader& lines, FieldCursor& fields, const char* what) {
  const std::string_view field = fields.next();
  const auto count = parse_count(field);
  if (!count) lines.fail(fields.column(), std::string("expected ") + what + ", found " + shown(field));
  return *count;
}

/// Counts the values of an array: all of them, or the lower triangle with or without its diagonal.
std::uint64_t dense_entry_count(const LineReader& lines, const MarketHeader& header) {
  using Wide = unsigned __int128;
  const Wide rows = header.row_count;
  Wide count = rows * header.column_count;
  if (header.symmetry == MarketSymmetry::symmetric) count = rows * (rows + 1) / 2;
  if (header.symmetry == MarketSymmetry::skew) count = rows == 0 ? 0 : rows * (rows - 1) / 2;
  if (count > static_cast<Wide>(std::numeric_limits<std::int64_t>::max()))
    lines.fail("an array of so many values cannot be");
  return static_cast<std::uint64_t>(count);
}

void read_size(const LineReader& lines, std::string_view line, MarketHeader& header) {
  FieldCursor fields(line);
  header.row_count = read_count(lines, fields, "the number of rows");
  header.column_count = read_count(lines, fields, "the number of columns");
  if (!header.is_dense) header.entry_count = read_count(lines, fields, "the number of entries");
  if (const auto rest = fields.next(); !rest.empty())
    lines.fail(fields.column(), "expected the end of the size line, found " + shown(rest));
  if (header.symmetry != MarketSymmetry::general && header.row_count != header.column_count)
    lines.fail("a symmetric matrix has as many rows as columns, found " + std::to_string(header.row_count) +
               " and " + std::to_string(header.column_count));
  if (header.is_dense) header.entry_count = dense_entry_count(lines, header);
}

}  // namespace

bool is_market_comment(std::string_view line) {
  const std::size_t first = line.find_first_not_of(" \t");
  return first == std::string_view::npos || line[first] == '%';
}

MarketHeader read_market_header(LineReader& lines) {
  std::string_view line;
  do {
    if (!lines.next(line)) lines.fail("is empty, expected \"%%MatrixMarket matrix ...\"");
  } while (line.find_first_not_of(" \t") == std::string_view::npos);
  MarketHeader header = read_banner(lines, line);
  do {
    if (!lines.next(line)) lines.fail("ends before the size line");
  } while (is_market_comment(line));
  read_size(lines, line, header);
  return header;
}

}  // namespace chunkhit
