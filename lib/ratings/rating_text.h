// Text of ratings → blocks: parsed as a table, as lines of a user and its items, or as the Netflix prize has
// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "chunkhit/sparse_spec.h"
#include "types/rating_block.h"

namespace chunkhit {

struct BlockMaps;

/// Which columns, from 0, hold what; no two the same.
struct RatingColumns {
  std::size_t user = 0;
  std::size_t item = 1;
  std::optional<std::size_t> value;  ///< none: every value is 1
  std::optional<std::size_t> time;
  bool operator==(const RatingColumns&) const = default;
};

/// The delimiter that stands for one or more blanks and tabs; those at a line's ends are skipped.
inline constexpr std::string_view kBlanks = "blanks";

/// How a table of ratings is written.
struct RatingTextSpec {
  std::string delimiter = ",";  ///< some bytes, without line ends and quotes, or kBlanks (without quoting)
  RatingColumns columns;
  std::size_t column_count = 0;  ///< a line with more is bad; 0: any number
  TextQuoting quoting = TextQuoting::none;
  std::string comment;         ///< lines that begin with this are skipped; empty: none are
  bool rounds_values = false;  ///< a value that keeps_value denies is the nearest float, else its line is bad
  std::int64_t time_scale = 1;  ///< times are multiplied by it, so that fractions of a second order ratings
  std::string header;  ///< lines equal to this (CR and a byte order mark aside) are skipped; empty: none
  bool operator==(const RatingTextSpec&) const = default;
};

/// What messages say of text in another encoding.
inline constexpr const char* kNotUtf8 = ": expected UTF-8; `encoding` latin-1 reads ISO 8859-1";

/// Bytes that a line may have.
inline constexpr std::size_t kMaxLineBytes = std::size_t{1} << 20;

/// Parses whole lines, the last one perhaps without its end, into `block` (replaced; its memory is used
/// again). Lines end with LF or CRLF. Bad lines are numbered from 1, the first of `text`. `maps` are empty
/// ones whose memory is used again, too; none: its own.
///
/// Ids are integers where all of the block's column are (parse_integer_id), else text as it stands. Ids that
/// are empty, NULL, NaN or \N or not UTF-8, and values that are no finite number, make a line bad.
void parse_rating_text(std::string_view text, const RatingTextSpec& spec, RatingBlock& block,
                       BlockMaps* maps = nullptr);

/// Bad lines of a block that are kept; the others are only counted, so that a block of nothing else stays
/// small.
inline constexpr std::size_t kMaxBadLines = 100;

/// Notes a bad line of a block; `text` is the whole line.
void add_bad_line(RatingBlock& block, std::uint64_t line, std::uint64_t column, LineProblem problem,
                  std::string_view text);
/// Notes one of more than kMaxLineBytes.
void add_long_line(RatingBlock& block, std::uint64_t line, std::string_view text);

/// How many bad lines a block has.
[[nodiscard]] std::uint64_t bad_line_count(const RatingBlock& block);

/// What a field holds, for a message: "nothing", or its first bytes in quotes.
[[nodiscard]] std::string found_text(std::string_view field);

/// Parses whole lines "USER ITEM ITEM ..." with blanks or tabs between the ids into `block` (replaced). Every
/// value is 1, there are no times. A user without items is a line like others and gives no rating; a line
/// with a missing id (is_missing_id) is bad and gives none either.
void parse_user_items(std::string_view text, RatingBlock& block, BlockMaps* maps = nullptr);

/// Parses whole lines of the Netflix prize into `block` (replaced): "ITEM:", and below it
/// USER,VALUE,YYYY-MM-DD. `item` is the one that the first lines are below; there is none at a file's
/// beginning. Times are the seconds to the day's beginning, in UTC.
void parse_netflix(std::string_view text, std::optional<std::int64_t> item, RatingBlock& block,
                   BlockMaps* maps = nullptr);

/// The item that the lines behind `text` are below: of its last line "ITEM:", or `item`.
[[nodiscard]] std::optional<std::int64_t> last_netflix_item(std::string_view text,
                                                            std::optional<std::int64_t> item);

}  // namespace chunkhit
