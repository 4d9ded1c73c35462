#include "pack/codec_choice.h"

#include <algorithm>
#include <charconv>
#include <system_error>

#include "base/throw_error.h"
#include "codec/chunk_codec.h"

namespace chunkhit {

CodecChoice parse_codec(const std::string& text, const std::string& container,
                        std::span<const std::string_view> codecs) {
  const std::size_t colon = text.find(':');
  const std::string name = text.substr(0, colon);
  if (std::find(codecs.begin(), codecs.end(), name) == codecs.end()) {
    std::string valid;
    for (const std::string_view one : codecs) valid += (valid.empty() ? "" : ", ") + std::string(one);
    throw_usage("`codec`: '" + name + "' is not for " + container + ", expected one of " + valid);
  }
  const ChunkCodec& codec = chunk_codec(name);
  CodecChoice choice{std::string(codec.name), codec.default_level};
  if (colon == std::string::npos) return choice;
  const std::string level = text.substr(colon + 1);
  const auto end = std::from_chars(level.data(), level.data() + level.size(), choice.level);
  if (end.ec != std::errc() || end.ptr != level.data() + level.size() || choice.level < codec.min_level ||
      choice.level > codec.max_level)
    throw_usage("`codec`: " + text + ": expected a level from " + std::to_string(codec.min_level) + " to " +
                std::to_string(codec.max_level));
  return choice;
}

std::string codec_text(const CodecChoice& choice) {
  return choice.codec == "none" ? "none" : choice.codec + ":" + std::to_string(choice.level);
}

}  // namespace chunkhit
