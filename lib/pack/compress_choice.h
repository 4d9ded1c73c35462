// NAME[:LEVEL] → a filter of chunks and its level.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace chunkhit {

/// A filter of chunks and its level.
struct CompressChoice {
  std::string filter;
  int level = 0;
};

/// Reads a filter's name, which ":LEVEL" may follow; throws usage unless it is one of `filters`, which those
/// for `container` are.
[[nodiscard]] CompressChoice parse_compress(const std::string& text, const std::string& container,
                                            std::span<const std::string_view> filters);

/// Writes it as a flag: "zstd:1", "none".
[[nodiscard]] std::string compress_text(const CompressChoice& choice);

}  // namespace chunkhit
