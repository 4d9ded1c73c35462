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
  static constexpr std::size_t kMaxEnds = 4096;

  void find_more(std::size_t begin);

  NumberColumns columns_;
  std::size_t found_until_ = 0;  // offset behind what was looked at
  std::size_t next_ = 1;         // of ends_: the first one of the line that is read next
  std::size_t end_count_ = 1;    // of ends_
  std::size_t line_limit_ = NumberRatings::kMaxCount;  // lines that are tried: few where many are others
  std::array<std::uint32_t, kMaxEnds> ends_;           // the one before `next_` is that of the line before
};

}  // namespace chunkhit
