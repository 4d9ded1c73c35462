// The words of flags → values. Every function throws usage, naming the flag, for text that is not its kind.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pack/pack_images.h"

namespace chunkhit {

/// Reads pixels of one side: "256", 1 to 65535.
[[nodiscard]] std::uint32_t parse_side(const std::string& flag, const std::string& text);

/// Reads "WxH" as width and height.
[[nodiscard]] std::pair<std::uint32_t, std::uint32_t> parse_size(const std::string& flag,
                                                                 const std::string& text);

/// Reads "WxH", or "N" for a square.
[[nodiscard]] std::pair<std::uint32_t, std::uint32_t> parse_crop(const std::string& flag,
                                                                 const std::string& text);

/// Reads "black", "white", "#rrggbb" or "r,g,b".
[[nodiscard]] std::array<std::uint8_t, 3> parse_color(const std::string& flag, const std::string& text);

/// Reads a number of pixels: "256M" or "256MP", where M is a million.
[[nodiscard]] std::uint64_t parse_pixels(const std::string& flag, const std::string& text);

/// A range of whole numbers, both ends in it.
struct CountRange {
  std::uint64_t least = 0;
  std::uint64_t most = UINT64_MAX;
};

/// Reads a whole number in `range`.
[[nodiscard]] std::uint64_t parse_count(const std::string& flag, const std::string& text, CountRange range);

/// Reads one character, "tab" or "\t".
[[nodiscard]] char parse_delimiter(const std::string& flag, const std::string& text);

/// Reads "train=0.9,val=0.1"; whether the shares add up is for the spec's check.
[[nodiscard]] std::vector<SplitShare> parse_split(const std::string& flag, const std::string& text);

/// How many rejects end a run: a share of the rows, or, when not 0, a count.
struct ErrorLimit {
  double share = 0;
  std::uint64_t count = 0;
};

/// Reads "1%", "0.5%" or a count.
[[nodiscard]] ErrorLimit parse_error_limit(const std::string& flag, const std::string& text);

/// Gives the enumerator of a name; CLI11 checked that it is one.
template <class Enum, std::size_t kCount>
[[nodiscard]] Enum parse_choice(const std::array<std::string_view, kCount>& names, const std::string& text) {
  return static_cast<Enum>(std::find(names.begin(), names.end(), text) - names.begin());
}

}  // namespace chunkhit
