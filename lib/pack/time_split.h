// Where the latest ratings begin.
#pragma once

#include <cstdint>
#include <optional>

#include "pack/rating_steps.h"
#include "pack/row_store.h"

namespace chunkhit {

/// Counts live ratings at or after a time.
[[nodiscard]] std::uint64_t count_since(const RowStore& rows, const LiveRatings& live, std::int64_t time);

/// Gives a time that at most `count` live ratings are at or after, and as many as ratings of equal times,
/// which stay together, allow; nothing where none can be. Reads all rows up to four times.
[[nodiscard]] std::optional<std::int64_t> latest_cut(const RowStore& rows, const LiveRatings& live,
                                                     std::uint64_t count);

}  // namespace chunkhit
