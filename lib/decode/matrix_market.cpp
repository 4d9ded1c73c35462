#include "decode/matrix_market.h"

#include <optional>
#include <utility>

#include "decode/names_beside.h"
#include "decode/text_fields.h"
#include "input/bad_line.h"
#include "input/rating_number.h"

namespace chunkhit {
namespace {

constexpr std::size_t kMaxLineBytes = std::size_t{1} << 20;

/// One line, the fields in it, and the block that hears of its problems.
struct EntryLine {
  const LineReader& lines;
  std::string_view line;
  RatingBlock& block;
  bool rounds_values = false;
  FieldCursor fields{line};

  void refuse(const std::string& what, std::string_view field) {
    add_bad_line(block, lines.line_number(), fields.column(), what + ", found " + found_text(field), line);
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
    const bool is_finite = parse_value(field, '.', lines.readable_end(), value);
    if (is_finite && (rounds_values || keeps_value(field, '.', value))) return value;
    refuse(std::string("value: expected ") + (is_finite ? kKeptValue : "a finite number"), field);
    return std::nullopt;
  }
  bool is_at_end() {
    const std::string_view rest = fields.next();
    if (!rest.empty()) refuse("expected the end of the line", rest);
    return rest.empty();
  }
};

}  // namespace

MatrixMarketReader::MatrixMarketReader(const std::string& path, const MatrixMarketSpec& spec,
                                       std::unique_ptr<TextStream> opened)
    : lines_(opened ? std::move(opened) : std::make_unique<TextStream>(path), kMaxLineBytes),
      header_(read_market_header(lines_)),
      rounds_values_(spec.rounds_values) {
  NamesBeside names;
  if (spec.names_beside)
    names = find_names_beside(path, header_.row_count, header_.column_count,
                              spec.transpose == Transpose::automatic, facts_.notices);
  bool transpose = spec.transpose == Transpose::yes;
  if (spec.transpose == Transpose::automatic && names.columns_are_users) {
    transpose = true;
    facts_.notices.push_back(path + ": barcodes name the columns, so columns are users (transposed)");
  }
  facts_.is_transposed = transpose;
  facts_.user_count = transpose ? header_.column_count : header_.row_count;
  facts_.item_count = transpose ? header_.row_count : header_.column_count;
  if ((transpose ? names.rows : names.columns).size() == 0) facts_.first_item = 1;
  array_row_ = header_.symmetry == MarketSymmetry::skew ? 1 : 0;
  collector_ = std::make_unique<EntryCollector>(lines_.name(), AxisIds{std::move(names.rows), 1},
                                                AxisIds{std::move(names.columns), 1}, transpose);
}

bool MatrixMarketReader::next(RatingBlock& block) {
  collector_->begin(block);
  const auto is_full = [&] {
    return collector_->is_full() || (!block.bad_lines.empty() && block.line_count >= kBlockRatings);
  };
  std::string_view line;
  while (!at_end_ && !is_full()) {
    at_end_ = !lines_.next(line);
    if (at_end_)
      check_end();
    else
      read_line(line, block);
  }
  const bool has_ratings = collector_->finish();
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
  collector_->add(row, column, value);
  if (header_.symmetry == MarketSymmetry::general || row == column) return;
  collector_->add(column, row, header_.symmetry == MarketSymmetry::skew ? -value : value);
}

void MatrixMarketReader::check_end() const {
  if (entries_read_ != header_.entry_count)
    lines_.fail("expected " + std::to_string(header_.entry_count) + " entries, got " +
                std::to_string(entries_read_));
}

}  // namespace chunkhit
