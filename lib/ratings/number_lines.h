// Lines of a table of ratings that hold nothing but short numbers, as those of most tables do: read many at a
// time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ratings/rating_text.h"

namespace chunkhit {

/// Ratings of consecutive lines.
struct NumberRatings {
  static constexpr std::size_t kMaxCount = 256;
  std::size_t count = 0;
  bool is_other_next = false;  ///< the next line is none of numbers, or too near to the text's end
  alignas(64) std::array<std::int64_t, kMaxCount> users;
  alignas(64) std::array<std::int64_t, kMaxCount> items;
  alignas(64) std::array<std::int64_t, kMaxCount> times;  ///< where there is a column of them
  std::array<float, kMaxCount> values;                    ///< the same
};

/// A text with one byte between fields, and the columns that are read.
struct NumberColumns {
  std::string_view text;
  char delimiter;
  std::size_t count;
  std::size_t user;
  std::size_t item;
  std::size_t value;  ///< `count`: there is none
  std::size_t time;   ///< the same
};

/// Offsets of some fields' ends in the text: of delimiters and LF.
struct FieldEnds {
  static constexpr std::size_t kMaxCount = 4096;
  std::size_t found_until = 0;                     ///< offset behind what was looked at
  std::size_t size = 1;                            ///< of `ends`; the first one is that of a line before
  std::size_t line_count = 0;                      ///< of `line_ends`
  std::array<std::uint32_t, kMaxCount> ends;       ///< offsets
  std::array<std::uint16_t, kMaxCount> line_ends;  ///< which of `ends` are LF
};

/// Fields of one column, as the vectors take them.
struct FieldWords {
  using Words = std::array<std::uint64_t, NumberRatings::kMaxCount>;
  alignas(64) Words ends;     ///< where the field before ends, and in the upper half where this one does
  alignas(64) Words first;    ///< 8 characters from the field's first one on
  alignas(64) Words last;     ///< the same, or 8 characters up to the last one of a longer field
  alignas(64) Words invalid;  ///< not 0: the line is none of numbers
};

/// Reads lines of a text with one byte between fields. It takes those with as many columns as the table,
/// whose ids are integers, whose value has at most 8 characters and whose time is an integer. It gives what
/// TextParser would give, which reads all others.
class NumberLines {
 public:
  /// Both outlive this object.
  NumberLines(std::string_view text, const RatingTextSpec& spec);
  /// Whether a spec's lines can be read so at all.
  [[nodiscard]] static bool can_read(std::string_view text, const RatingTextSpec& spec);
  /// Replaces `ratings` by those of some lines from offset `begin` on, none where the first one is another.
  /// Returns where the next line begins. `begin` never decreases.
  [[nodiscard]] std::size_t read(std::size_t begin, NumberRatings& ratings);

 private:
  void go_to(std::size_t begin);
  void find_more();
  [[nodiscard]] std::size_t count_lines(std::size_t begin, bool has_cr) const;

  NumberColumns columns_;
  FieldEnds ends_;
  FieldWords words_;
  std::size_t next_ = 1;       // of ends_.ends: the first one of the line that is read next
  std::size_t next_line_ = 0;  // of ends_.line_ends: that of this line
  std::size_t line_limit_ = NumberRatings::kMaxCount;  // lines that are tried: few where many are others
};

}  // namespace chunkhit
