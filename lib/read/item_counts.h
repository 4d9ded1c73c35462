// items.csv of a pack of matrices, as its reader needs it. Layout: schemas/matrix-manifest.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace chunkhit {

/// Reads how many ratings each of `column_count` items has; `path` is for messages. Throws bad_data when the
/// text is no such list.
[[nodiscard]] std::vector<std::uint64_t> parse_item_counts(std::string_view text, const std::string& path,
                                                           std::uint64_t column_count);

}  // namespace chunkhit
