// Matrix Market files (.mtx), coordinate and array.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "decode/entry_collector.h"
#include "decode/matrix_market_header.h"
#include "decode/rating_reader.h"
#include "input/line_reader.h"

namespace chunkhit {

/// How a Matrix Market file is read.
struct MatrixMarketSpec {
  Transpose transpose = Transpose::automatic;  ///< automatic: yes where a file of barcodes names the columns
  bool names_beside = true;  ///< take ids from barcodes.tsv and features.tsv or genes.tsv in the same folder
  bool rounds_values = false;  ///< a value that keeps_value denies is the nearest float, else its line is bad
};

/// Reads a .mtx file, plain or compressed. Symmetric matrices are expanded; ids are names from the files
/// beside it, or rows and columns counted from 1 as in the file. Zeros of an array are left out, those that
/// coordinates name are given.
class MatrixMarketReader : public RatingReader {
 public:
  /// Reads up to the size line, and the names; throws bad_data. `opened`: the path's stream where its head
  /// was read already, or null.
  MatrixMarketReader(const std::string& path, const MatrixMarketSpec& spec,
                     std::unique_ptr<TextStream> opened = nullptr);
  [[nodiscard]] bool next(RatingBlock& block) override;

 private:
  void read_line(std::string_view line, RatingBlock& block);
  void add_coordinates(std::string_view line, RatingBlock& block);
  void add_array_value(std::string_view line, RatingBlock& block);
  void add_with_mirror(std::uint64_t row, std::uint64_t column, float value);
  void check_end() const;

  LineReader lines_;
  MarketHeader header_;
  bool rounds_values_;
  std::unique_ptr<EntryCollector> collector_;
  std::uint64_t entries_read_ = 0;
  std::uint64_t array_row_ = 0;  // of the next value of an array
  std::uint64_t array_column_ = 0;
  bool at_end_ = false;
};

}  // namespace chunkhit
