// The ids of one column of a block, while its lines are parsed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "input/id_map.h"
#include "input/rating_number.h"
#include "types/rating_block.h"

namespace chunkhit {

/// Gathers a column's ids and numbers them at the end, all at once.
class IdColumn {
 public:
  /// Appends the id of the next rating. Text must stay where it is until `finish`; bytes behind it are
  /// readable up to `readable_end` (parse_integer_id).
  void append(std::string_view id, const char* readable_end) {
    std::int64_t number = 0;
    if (texts_.empty() && parse_integer_id(id, readable_end, number))
      numbers_.push_back(number);
    else
      texts_.push_back(id);
  }
  /// Appends the id of the next rating, whose text may go away.
  void append_fleeting(std::string_view id, BlockIds& block) {
    finish_gathered(block);
    block.of_rating.push_back(ids_.add(id));
  }
  /// Gives the block its ids, each once, and which of them every rating has.
  void finish(BlockIds& block) {
    finish_gathered(block);
    ids_.move_to(block);
  }

 private:
  void finish_gathered(BlockIds& block) {
    ids_.add(numbers_, block.of_rating);
    ids_.add(texts_, block.of_rating);
    numbers_.clear();
    texts_.clear();
  }

  std::vector<std::int64_t> numbers_;    // of the first ratings
  std::vector<std::string_view> texts_;  // of those from the first on that is no integer
  IdMap ids_;
};

/// Returns whether text stands for a missing id: nothing, NULL or NaN in upper or lower case, \N.
[[nodiscard]] inline bool is_missing_id(std::string_view text) {
  if (text.size() > 4) return false;
  const auto is = [text](std::string_view word) {
    if (text.size() != word.size()) return false;
    for (std::size_t at = 0; at < word.size(); ++at)
      if ((text[at] | 0x20) != word[at]) return false;
    return true;
  };
  return text.empty() || text == "\\N" || is("null") || is("nan");
}

/// Empties a block and keeps its memory.
void clear_block(RatingBlock& block);

}  // namespace chunkhit
