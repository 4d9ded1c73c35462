// JSON lines of ratings, an object on each line → blocks.
#pragma once

#include <string_view>

#include "ratings/rating_table.h"
#include "types/rating_block.h"

namespace chunkhit {

struct BlockMaps;

/// Parses whole lines into `block` (replaced). Ids and times are texts or numbers, which are taken as they
/// are written; values may be true (1) and false (0), too. Bad lines are those that are no object, lack a
/// field or have it twice. What other fields hold is looked at only to find its end.
void parse_json_lines(std::string_view text, const RatingTable& table, RatingBlock& block,
                      BlockMaps* maps = nullptr);

}  // namespace chunkhit
