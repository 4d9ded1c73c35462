#include "input/id_column.h"

namespace chunkhit {

void clear_block(RatingBlock& block) {
  for (BlockIds* ids : {&block.users, &block.items}) {
    ids->of_rating.clear();
    ids->numbers.clear();
    ids->text.clear();
    ids->text_ends.clear();
  }
  block.values.clear();
  block.times.clear();
  block.bad_lines.clear();
  block.more_bad_lines.clear();
  block.line_count = block.blank_lines = block.comment_lines = block.header_lines = 0;
}

}  // namespace chunkhit
