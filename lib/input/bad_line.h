// Lines that give no rating: what is kept of them and how they are counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "types/rating_block.h"

namespace chunkhit {

/// Bad lines of a block that are kept; the others are only counted, so that a block of nothing else stays
/// small.
inline constexpr std::size_t kMaxBadLines = 100;

/// Notes a bad line of a block; `text` is the whole line.
void add_bad_line(RatingBlock& block, std::uint64_t line, std::uint64_t column, const std::string& reason,
                  std::string_view text);

/// How many bad lines a block has.
[[nodiscard]] std::uint64_t bad_line_count(const RatingBlock& block);

/// The part of a reason that lines with the same error share: "value: expected a number".
[[nodiscard]] std::string bad_line_kind(std::string_view reason);

/// What a field holds, for a message: "nothing", or its first bytes in quotes.
[[nodiscard]] std::string found_text(std::string_view field);

}  // namespace chunkhit
