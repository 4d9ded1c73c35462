// NAME[:LEVEL] → a codec of chunks and its level.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace chunkhit {

/// A codec of chunks and its level.
struct CodecChoice {
  std::string codec;
  int level = 0;
};

/// Reads a codec's name, which ":LEVEL" may follow; throws usage unless it is one of `filters`, which those
/// for `container` are.
[[nodiscard]] CodecChoice parse_codec(const std::string& text, const std::string& container,
                                      std::span<const std::string_view> codecs);

/// Writes it as a flag: "zstd:1", "none".
[[nodiscard]] std::string codec_text(const CodecChoice& choice);

}  // namespace chunkhit
