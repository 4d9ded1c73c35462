// A piece of the input of pack-sparse: (user, item, value, time) of some lines, in their order, labels of
// rows, bad lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "types/text_list.h"

namespace chunkhit {

/// Whether a value lost more than digits of a fraction: it is at least 2^24, or so near to 0 that floats have
/// fewer digits there, and the float is not equal to it.
template <class Wide>
[[nodiscard]] bool is_lost(Wide value, float nearest) {
  constexpr Wide kFirstInexact = 1 << 24;
  if (static_cast<Wide>(nearest) == value) return false;
  const Wide magnitude = value < 0 ? -value : value;
  return magnitude >= kFirstInexact || magnitude < Wide{std::numeric_limits<float>::min()};
}

/// What was noted of values that no float is equal to.
struct RoundedValues {
  std::uint64_t count = 0;
  std::uint64_t lost_count = 0;  ///< values among these that are `is_lost`
  double first_lost = 0;

  /// Gives the nearest float. Numbers beyond all floats become infinite.
  template <class Wide>
  float take(Wide value) {
    const auto nearest = static_cast<float>(value);
    if (static_cast<Wide>(nearest) == value) return nearest;
    ++count;
    if (is_lost(value, nearest) && ++lost_count == 1) first_lost = static_cast<double>(value);
    return nearest;
  }
};

/// Labels of rows, in the order of rows; a row has none, one or several.
struct RowLabels {
  static constexpr std::int64_t kNoGroup = INT64_MIN;
  std::vector<float> values;         ///< labels of all rows, one after the other
  std::vector<std::uint64_t> ends;   ///< end of each row's labels in `values`
  std::vector<std::int64_t> groups;  ///< the query that each row belongs to, or kNoGroup; empty: none has one
  /// Bytes of memory that they take; as much again for a moment while they grow.
  [[nodiscard]] std::uint64_t memory_bytes() const {
    return values.size() * sizeof(float) + (ends.size() + groups.size()) * sizeof(std::uint64_t);
  }
  [[nodiscard]] std::size_t row_count() const { return ends.size(); }
  [[nodiscard]] std::span<const float> of_row(std::size_t row) const {
    const std::uint64_t begin = row == 0 ? 0 : ends[row - 1];
    return std::span(values).subspan(begin, ends[row] - begin);
  }
};

/// The different ids of a block, each once, and which of them every rating has.
struct BlockIds {
  /// With a number that the whole input has for an id, in place of an index into the ids below.
  static constexpr std::uint32_t kKnown = 1u << 31;
  std::vector<std::uint32_t> of_rating;  ///< indices into the ids below, in order of first appearance
  std::vector<std::int64_t> numbers;     ///< integer ids; or
  TextList texts;                        ///< ids as text; empty where ids are numbers
  [[nodiscard]] bool are_text() const { return !texts.empty(); }
};

/// Why a line gives no rating.
struct LineProblem {
  std::string expected;    ///< "value: expected a number", equal in all lines with the same problem
  std::string found = {};  ///< "\"x\"", or nothing
  [[nodiscard]] std::string reason() const {
    return found.empty() ? expected : expected + ", found " + found;
  }
};

/// A line, or an entry, that gives no rating.
struct BadLine {
  std::uint64_t line = 0;    ///< line of the file, from 1
  std::uint64_t column = 0;  ///< column in bytes, from 1
  LineProblem problem;
  std::string text;  ///< the line, at most 200 bytes of it
};

/// Ratings of a block, in the input's order. Vectors of ratings are as long as users.of_rating.
struct RatingBlock {
  BlockIds users;
  BlockIds items;
  std::vector<float> values;                            ///< empty: every value is 1
  std::vector<std::int64_t> times;                      ///< empty: there are none
  std::vector<BadLine> bad_lines;                       ///< the first kMaxBadLines
  std::map<std::string, std::uint64_t> more_bad_lines;  ///< count of the others by LineProblem::expected
  bool ends_with_long_line = false;  ///< the last line is bad, and nothing behind it was read
  std::uint64_t line_count = 0;      ///< all of them, bad and skipped ones too
  std::uint64_t blank_lines = 0;     ///< skipped
  std::uint64_t comment_lines = 0;   ///< skipped
  std::uint64_t header_lines =
      0;  ///< skipped: the file's first, and those of files that were put one behind the other
  std::uint64_t cut_times = 0;   ///< times that had a fraction, which was dropped
  std::uint64_t text_bytes = 0;  ///< of the lines that a reader of matrices made it of
  std::uint64_t kept_bytes = 0;  ///< memory that the block's reader keeps until the end: labels
  [[nodiscard]] std::size_t size() const { return users.of_rating.size(); }
};

}  // namespace chunkhit
