// Files that hold a matrix of ratings, read from front to back as blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "types/rating_block.h"

namespace chunkhit {

/// About how many ratings a block has; whole lines and rows may make it larger. A run holds several blocks,
/// also where its memory is small.
inline constexpr std::size_t kBlockRatings = std::size_t{1} << 17;

/// What stands for all of a pack.
struct PackFacts {
  std::uint64_t pack_id = 0;
  std::uint64_t bytes = 0;  ///< bytes of all parts
};

/// What a file says of its matrix beside the entries.
struct MatrixFacts {
  std::uint64_t user_count = 0;  ///< users of the shape; users and items without an entry get no id
  std::uint64_t item_count = 0;
  bool is_transposed = false;              ///< the shape's columns are users
  bool is_pattern = false;                 ///< entries have no values: all are 1
  std::optional<std::int64_t> first_item;  ///< items have no names but numbers, which count from here
  RoundedValues rounded;             ///< values that no 32-bit float is equal to: the nearest one was taken
  std::optional<PackFacts> pack;     ///< of a pack
  std::vector<std::string> notices;  ///< what was assumed, made up or left out; a sentence each
};

/// Gives the ratings of a file, one block after the other. One thread at a time.
class RatingReader {
 public:
  virtual ~RatingReader() = default;
  /// Replaces `block` by the next ratings; false where there are none left. Lines that give no rating are in
  /// its `bad_lines`; throws bad_data, naming file and position, where the file as a whole cannot be trusted.
  [[nodiscard]] virtual bool next(RatingBlock& block) = 0;
  /// Which of its files a reader of several gave a block of last; a block is of one file.
  [[nodiscard]] virtual std::size_t file_index() const { return 0; }
  /// Bytes of all lines, which blocks count as `text_bytes`, where they are known from the beginning.
  [[nodiscard]] virtual std::optional<std::uint64_t> text_bytes() const { return std::nullopt; }
  /// Whole once `next` has given false.
  [[nodiscard]] const MatrixFacts& facts() const { return facts_; }

 protected:
  MatrixFacts facts_;
};

}  // namespace chunkhit
