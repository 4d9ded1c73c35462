// Ratings as a delimited table: text → blocks of ratings.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "types/rating_block.h"

namespace chunkhit {

/// Which columns, from 0, hold what; no two the same.
struct RatingColumns {
  std::size_t user = 0;
  std::size_t item = 1;
  std::optional<std::size_t> value;  ///< none: every value is 1
  std::optional<std::size_t> time;
  bool operator==(const RatingColumns&) const = default;
};

/// Whether fields may stand in double quotes.
enum class Quoting : std::uint8_t {
  none,          ///< a quote is a letter like others
  double_quote,  ///< RFC 4180: "" inside stands for ", delimiters and line ends inside are text
  automatic,     ///< detected from the first lines (rating_table.h); a line that has one after all is bad
  letters,       ///< letters, as detected: a line with a field that stands in quotes after all is bad
};
/// Those that can be given.
inline constexpr std::array<std::string_view, 3> kQuotingNames{"none", "double", "auto"};

/// The delimiter that stands for one or more blanks and tabs; those at a line's ends are skipped.
inline constexpr std::string_view kBlanks = "blanks";

/// How a table of ratings is written.
struct RatingTextSpec {
  std::string delimiter = ",";  ///< some bytes, without line ends and quotes, or kBlanks (without quoting)
  RatingColumns columns;
  std::size_t column_count = 0;  ///< a line with more is bad; 0: any number
  Quoting quoting = Quoting::none;
  std::string comment;         ///< lines that begin with this are skipped; empty: none are
  char decimal_point = '.';    ///< or ','
  bool rounds_values = false;  ///< a value that keeps_value denies is the nearest float, else its line is bad
  std::string header;  ///< lines equal to this (CR and a byte order mark aside) are skipped; empty: none
  bool operator==(const RatingTextSpec&) const = default;
};

/// Bytes that a line may have.
inline constexpr std::size_t kMaxLineBytes = std::size_t{1} << 20;
/// The reason of a bad line that has more; nothing behind it was read.
inline constexpr std::string_view kLongLine = "line: expected at most 1 MiB, found more";

/// Parses whole lines, the last one perhaps without its end, into `block` (replaced; its memory is used
/// again). Lines end with LF or CRLF. Bad lines are numbered from 1, the first of `text`.
///
/// Ids are integers where all of the block's column are (parse_integer_id), else text as it stands. Ids that
/// are empty, NULL, NaN or \N or not UTF-8, and values that are no finite number, make a line bad.
void parse_rating_text(std::string_view text, const RatingTextSpec& spec, RatingBlock& block);

}  // namespace chunkhit
