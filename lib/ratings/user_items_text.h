// Ratings that are not a table: lines of a user and its items, and Netflix's lines below an item.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "types/rating_block.h"

namespace chunkhit {

/// Parses whole lines "USER ITEM ITEM ..." with blanks or tabs between the ids into `block` (replaced). Every
/// value is 1, there are no times. A user without items is a line like others and gives no rating; a line
/// with a missing id (is_missing_id) is bad and gives none either.
void parse_user_items(std::string_view text, RatingBlock& block);

/// Parses whole lines of the Netflix prize into `block` (replaced): "ITEM:", and below it
/// USER,VALUE,YYYY-MM-DD. `item` is the one that the first lines are below; there is none at a file's
/// beginning. Times are the seconds to the day's beginning, in UTC.
void parse_netflix(std::string_view text, std::optional<std::int64_t> item, RatingBlock& block);

/// The item that the lines behind `text` are below: of its last line "ITEM:", or `item`.
[[nodiscard]] std::optional<std::int64_t> last_netflix_item(std::string_view text,
                                                            std::optional<std::int64_t> item);

}  // namespace chunkhit
