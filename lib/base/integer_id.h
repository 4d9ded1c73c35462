// Ids that are integers, wherever they are text.
#pragma once

#include <cstdint>
#include <string_view>

namespace chunkhit {

/// Reads an integer that is written as integers are: digits without leading zeros, perhaps after a minus, in
/// 64 bits. False for all else ("007", "+7", "-0", "7.0"): such an id is text.
[[nodiscard]] bool parse_integer_id(std::string_view text, std::int64_t& id);

}  // namespace chunkhit
