#include "ratings/matrix_market.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>

#include "base/text.h"
#include "base/throw_error.h"
#include "base/words.h"
#include "ratings/id_map.h"
#include "ratings/rating_fields.h"
#include "ratings/rating_text.h"

namespace chunkhit {
namespace {

// No number of so few digits overflows.
constexpr std::size_t kSafeDigits = 18;

}  // namespace

std::optional<std::uint64_t> parse_count(std::string_view field) {
  if (field.empty()) return std::nullopt;
  std::uint64_t number = 0;
  if (field.size() <= kSafeDigits) {
    for (const char c : field) {
      if (c < '0' || c > '9') return std::nullopt;
      number = number * 10 + static_cast<std::uint64_t>(c - '0');
    }
    return number;
  }
  if (!parse_all(field, number) || number > INT64_MAX) return std::nullopt;
  return number;
}

namespace {

constexpr std::size_t kMaxShownBytes = 40;

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
  // The standard says that case does not matter.
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

namespace {

constexpr std::size_t kMaxMatrixLineBytes = std::size_t{1} << 20;

/// One line, the fields in it, and the block that hears of its problems.
struct EntryLine {
  const LineReader& lines;
  std::string_view line;
  RatingBlock& block;
  bool rounds_values = false;
  FieldCursor fields{line};

  void refuse(const std::string& what, std::string_view field) {
    add_bad_line(block, lines.line_number(), fields.column(), {what, found_text(field)}, line);
  }
  /// Reads an index of a row or column, from 1, and gives it from 0.
  std::optional<std::uint64_t> read_index(std::uint64_t count, const char* axis) {
    const std::string_view field = fields.next();
    const auto index = parse_count(field);
    if (index && *index >= 1 && *index <= count) return *index - 1;
    refuse(std::string(axis) + ": expected 1 to " + std::to_string(count), field);
    return std::nullopt;
  }
  std::optional<float> read_value() {
    const std::string_view field = fields.next();
    float value = 0;
    const bool is_finite = parse_value(field, value);
    if (is_finite && (rounds_values || keeps_value(field, value))) return value;
    refuse(std::string("value: expected ") + (is_finite ? kKeptValue : "a finite number"), field);
    return std::nullopt;
  }
  bool is_at_end() {
    const std::string_view rest = fields.next();
    if (!rest.empty()) refuse("expected the end of the line", rest);
    return rest.empty();
  }
};

/// A file of names beside a matrix, plain or compressed; empty: there is none.
std::string find_beside(const std::filesystem::path& stem) {
  for (const char* const packed : {"", ".gz", ".zst", ".xz", ".bz2"})
    if (std::error_code ignored; std::filesystem::exists(stem.string() + packed, ignored))
      return stem.string() + packed;
  return "";
}

/// Files of the names of a matrix's cells and genes.
struct NameFiles {
  std::string cells;
  std::string genes;
};

NameFiles find_names(const std::string& path) {
  if (path == "-") return {};
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::string name = std::filesystem::path(path).filename().string();
  for (const std::string_view packed : {".gz", ".zst", ".xz", ".bz2"})
    if (name.ends_with(packed)) name.resize(name.size() - packed.size());
  NameFiles found{find_beside(folder / (name + "_cols")), find_beside(folder / (name + "_rows"))};
  if (!found.cells.empty()) return found;
  constexpr std::string_view kTenx = "matrix.mtx";
  const bool is_tenx = name.ends_with(kTenx);
  const std::string prefix = is_tenx ? name.substr(0, name.size() - kTenx.size()) : "";
  found.cells = find_beside(folder / (prefix + "barcodes.tsv"));
  if (found.cells.empty() && !is_tenx) return found;
  if (!found.cells.empty()) found.genes.clear();
  for (const char* const genes : {"features.tsv", "genes.tsv"})
    if (found.genes.empty()) found.genes = find_beside(folder / (prefix + genes));
  return found;
}

/// Reads the first field of each line; no names for an empty path.
TextList read_names(const std::string& path) {
  TextList names;
  if (path.empty()) return names;
  LineReader lines(path, kMaxMatrixLineBytes);
  std::string_view line;
  while (lines.next(line)) {
    const std::string_view name = line.substr(0, line.find('\t'));
    if (is_missing_id(name) || !is_utf8(name)) lines.fail("expected a name, found " + shown(name));
    names.add(name);
  }
  return names;
}

}  // namespace

MatrixMarketReader::MatrixMarketReader(const std::string& path, const MatrixMarketSpec& spec,
                                       std::unique_ptr<TextStream> opened)
    : lines_(opened ? std::move(opened) : std::make_unique<TextStream>(path), kMaxMatrixLineBytes),
      header_(read_market_header(lines_)),
      rounds_values_(spec.rounds_values),
      collector_(lines_.name(), {{}, 1}, {{}, 1}, spec.transpose) {
  facts_.is_transposed = spec.transpose;
  facts_.is_pattern = header_.is_pattern;
  facts_.first_item = 1;
  if (!spec.transpose) take_names(path);
  facts_.user_count = facts_.is_transposed ? header_.column_count : header_.row_count;
  facts_.item_count = facts_.is_transposed ? header_.row_count : header_.column_count;
  array_row_ = header_.symmetry == MarketSymmetry::skew ? 1 : 0;
}

/// Cells are users, be they columns, as most programs write them, or rows. Names of genes alone tell, too,
/// but another matrix may have them: those that do not fit are ignored.
void MatrixMarketReader::take_names(const std::string& path) {
  const NameFiles files = find_names(path);
  if (files.cells.empty() && files.genes.empty()) return;
  TextList cells = read_names(files.cells);
  TextList genes = read_names(files.genes);
  const bool has_cells = !files.cells.empty();
  const bool are_columns =
      has_cells ? cells.size() == header_.column_count : genes.size() == header_.row_count;
  if (!has_cells && !are_columns) {
    if (genes.size() != header_.column_count)  // else rows are cells
      facts_.notices.push_back(path + ": " + files.genes +
                               " is ignored: " + count_text(genes.size(), "name") + " for " +
                               count_text(header_.row_count, "row") + "; `transpose` takes columns as users");
    return;
  }
  const std::uint64_t gene_count = are_columns ? header_.row_count : header_.column_count;
  const bool are_cells = are_columns || cells.size() == header_.row_count;
  const bool are_genes = genes.empty() || genes.size() == gene_count;
  if (has_cells && (!are_cells || !are_genes)) {
    std::string found = files.cells + " has " + count_text(cells.size(), "name");
    if (!files.genes.empty()) found += " and " + files.genes + " " + count_text(genes.size(), "name");
    throw_bad_data(path + ": " + std::to_string(header_.row_count) + " x " +
                   std::to_string(header_.column_count) + ", but " + found +
                   "; `transpose` takes its columns as users, by number");
  }
  const std::size_t changed = make_unique_names(cells) + make_unique_names(genes);
  facts_.is_transposed = are_columns;
  if (!genes.empty()) facts_.first_item.reset();
  facts_.notices.push_back(path + ": users are its " + (are_columns ? "columns" : "rows") +
                           (has_cells ? ", named by " + files.cells : ", by number") +
                           (files.genes.empty() ? "" : ", items by " + files.genes));
  if (changed > 0)
    facts_.notices.push_back(path + ": " + count_text(changed, "name") +
                             " that came before got -1, -2, ... behind");
  AxisIds cell_ids{std::move(cells), 1};
  AxisIds gene_ids{std::move(genes), 1};
  if (are_columns) std::swap(cell_ids, gene_ids);
  collector_ = EntryCollector(lines_.name(), std::move(cell_ids), std::move(gene_ids), are_columns);
}

bool MatrixMarketReader::next(RatingBlock& block) {
  collector_.begin(block);
  const auto is_full = [&] {
    return collector_.is_full() || (!block.bad_lines.empty() && block.line_count >= kBlockRatings);
  };
  std::string_view line;
  while (!at_end_ && !is_full()) {
    at_end_ = !lines_.next(line);
    if (at_end_)
      check_end();
    else
      read_line(line, block);
  }
  block.text_bytes = lines_.bytes_done() - std::exchange(bytes_given_, lines_.bytes_done());
  const bool has_ratings = collector_.finish();
  return has_ratings || !block.bad_lines.empty();
}

void MatrixMarketReader::read_line(std::string_view line, RatingBlock& block) {
  ++block.line_count;
  if (is_market_comment(line)) {
    ++(line.find('%') == std::string_view::npos ? block.blank_lines : block.comment_lines);
    return;
  }
  if (entries_read_ == header_.entry_count)
    lines_.fail("expected " + std::to_string(header_.entry_count) + " entries, found more");
  ++entries_read_;
  if (header_.is_dense)
    add_array_value(line, block);
  else
    add_coordinates(line, block);
}

void MatrixMarketReader::add_coordinates(std::string_view line, RatingBlock& block) {
  EntryLine entry{lines_, line, block, rounds_values_};
  const auto row = entry.read_index(header_.row_count, "row");
  if (!row) return;
  const auto column = entry.read_index(header_.column_count, "column");
  if (!column) return;
  if (header_.symmetry == MarketSymmetry::skew && *row == *column)
    return entry.refuse("expected nothing on the diagonal of a skew-symmetric matrix",
                        std::to_string(*column + 1));
  const std::optional<float> value = header_.is_pattern ? 1 : entry.read_value();
  if (value && entry.is_at_end()) add_with_mirror(*row, *column, *value);
}

void MatrixMarketReader::add_array_value(std::string_view line, RatingBlock& block) {
  const std::uint64_t row = array_row_;
  const std::uint64_t column = array_column_;
  if (++array_row_ == header_.row_count) {
    ++array_column_;
    array_row_ = header_.symmetry == MarketSymmetry::general     ? 0
                 : header_.symmetry == MarketSymmetry::symmetric ? array_column_
                                                                 : array_column_ + 1;
  }
  EntryLine entry{lines_, line, block, rounds_values_};
  const auto value = entry.read_value();
  if (value && entry.is_at_end() && *value != 0) add_with_mirror(row, column, *value);
}

void MatrixMarketReader::add_with_mirror(std::uint64_t row, std::uint64_t column, float value) {
  collector_.add(row, column, value);
  if (header_.symmetry == MarketSymmetry::general || row == column) return;
  collector_.add(column, row, header_.symmetry == MarketSymmetry::skew ? -value : value);
}

void MatrixMarketReader::check_end() const {
  if (entries_read_ != header_.entry_count)
    lines_.fail("expected " + std::to_string(header_.entry_count) + " entries, got " +
                std::to_string(entries_read_));
}

}  // namespace chunkhit
