// Matrix Market files (.mtx), coordinate and array.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/line_reader.h"
#include "ratings/entry_collector.h"
#include "ratings/rating_reader.h"

namespace chunkhit {

/// Gives the fields of a line one by one.
class FieldCursor {
 public:
  explicit FieldCursor(std::string_view line) : line_(line) {}
  /// The next field; empty at the end of the line.
  [[nodiscard]] std::string_view next() {
    begin_ = end_;
    while (begin_ < line_.size() && is_blank(line_[begin_])) ++begin_;
    end_ = begin_;
    while (end_ < line_.size() && !is_blank(line_[end_])) ++end_;
    return line_.substr(begin_, end_ - begin_);
  }
  /// The column, in bytes from 1, where the field that was given last begins.
  [[nodiscard]] std::uint64_t column() const { return begin_ + 1; }

 private:
  static bool is_blank(char c) { return c == ' ' || c == '\t'; }
  std::string_view line_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

/// Reads decimal digits, nothing else, as a number below 2^63.
[[nodiscard]] std::optional<std::uint64_t> parse_count(std::string_view field);

enum class MarketSymmetry : std::uint8_t { general, symmetric, skew };

/// What banner and size line say, checked.
struct MarketHeader {
  bool is_dense = false;    ///< "array": a value a line, column by column, and no indices
  bool is_pattern = false;  ///< entries have no value: all are 1
  MarketSymmetry symmetry = MarketSymmetry::general;
  std::uint64_t row_count = 0;
  std::uint64_t column_count = 0;
  std::uint64_t entry_count = 0;  ///< lines that follow; of a symmetric array those of its lower triangle
};

/// Whether a line has no entry: blank or a comment.
[[nodiscard]] bool is_market_comment(std::string_view line);

/// Reads up to the size line; throws bad_data for what is no matrix of real numbers.
[[nodiscard]] MarketHeader read_market_header(LineReader& lines);

/// How a Matrix Market file is read.
struct MatrixMarketSpec {
  bool transpose = false;      ///< automatic: cells are users, without names of cells rows
  bool rounds_values = false;  ///< a value that keeps_value denies is the nearest float, else its line is bad
};

/// Reads a .mtx file, plain or compressed. Symmetric matrices are expanded. Ids are the names of cells and
/// genes in files beside it, as 10x Genomics (PREFIXbarcodes.tsv, PREFIXfeatures.tsv or genes.tsv beside
/// PREFIXmatrix.mtx) and the Expression Atlas (X.mtx_cols, X.mtx_rows) have them, where `transpose` is
/// automatic; else rows and columns counted from 1. Zeros of an array are left out, those that coordinates
/// name are given.
class MatrixMarketReader : public RatingReader {
 public:
  /// Reads up to the size line; throws bad_data. `opened`: the path's stream where its head
  /// was read already, or null.
  MatrixMarketReader(const std::string& path, const MatrixMarketSpec& spec,
                     std::unique_ptr<TextStream> opened = nullptr);
  [[nodiscard]] bool next(RatingBlock& block) override;
  [[nodiscard]] std::optional<std::uint64_t> text_bytes() const override { return lines_.byte_count(); }

 private:
  void take_names(const std::string& path);
  void read_line(std::string_view line, RatingBlock& block);
  void add_coordinates(std::string_view line, RatingBlock& block);
  void add_array_value(std::string_view line, RatingBlock& block);
  void add_with_mirror(std::uint64_t row, std::uint64_t column, float value);
  void check_end() const;

  LineReader lines_;
  MarketHeader header_;
  bool rounds_values_;
  EntryCollector collector_;
  std::uint64_t entries_read_ = 0;
  std::uint64_t array_row_ = 0;  // of the next value of an array
  std::uint64_t array_column_ = 0;
  bool at_end_ = false;
  std::uint64_t bytes_given_ = 0;  // of the text of earlier blocks
};

}  // namespace chunkhit
