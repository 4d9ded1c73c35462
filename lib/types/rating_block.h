// A piece of the input of pack-sparse: (user, item, value, time) of some lines, in their order.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace chunkhit {

/// The different ids of a block, each once, and which of them every rating has.
struct BlockIds {
  std::vector<std::uint32_t> of_rating;  ///< indices into the ids below, in order of first appearance
  std::vector<std::int64_t> numbers;     ///< integer ids; or
  std::string text;                      ///< ids as text, one after the other; empty where ids are numbers
  std::vector<std::uint64_t> text_ends;  ///< where each ends in `text`
  [[nodiscard]] bool are_text() const { return !text_ends.empty(); }
  [[nodiscard]] std::string_view text_of(std::size_t index) const {
    const std::uint64_t begin = index == 0 ? 0 : text_ends[index - 1];
    return std::string_view(text).substr(begin, text_ends[index] - begin);
  }
};

/// A line, or an entry, that gives no rating.
struct BadLine {
  std::uint64_t line = 0;    ///< of the file, from 1
  std::uint64_t column = 0;  ///< in bytes, from 1
  std::string reason;        ///< "value: expected a number, found \"x\""
  std::string text;          ///< the line, at most 200 bytes of it
};

/// Ratings of a block, in the input's order. Vectors of ratings are as long as users.of_rating.
struct RatingBlock {
  BlockIds users;
  BlockIds items;
  std::vector<float> values;                            ///< empty: every value is 1
  std::vector<std::int64_t> times;                      ///< empty: there are none
  std::vector<BadLine> bad_lines;                       ///< the first kMaxBadLines
  std::map<std::string, std::uint64_t> more_bad_lines;  ///< how many others, by kind (input/bad_line.h)
  std::uint64_t line_count = 0;                         ///< all of them, bad and skipped ones too
  std::uint64_t blank_lines = 0;                        ///< skipped
  std::uint64_t comment_lines = 0;                      ///< skipped
  std::uint64_t header_lines =
      0;  ///< skipped: the file's first, and those of files that were put one behind the other
  std::uint64_t kept_bytes = 0;  ///< of memory that the block's reader keeps until the end: labels
  [[nodiscard]] std::size_t size() const { return users.of_rating.size(); }
};

}  // namespace chunkhit
