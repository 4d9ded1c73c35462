// The first lines of a Matrix Market file: banner and size line.
#pragma once

#include <cstdint>

#include "input/line_reader.h"

namespace chunkhit {

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

}  // namespace chunkhit
