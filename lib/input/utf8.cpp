#include "input/utf8.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace chunkhit {
namespace {

std::size_t ascii_prefix(const std::uint8_t* bytes, std::size_t count) {
  constexpr std::uint64_t kHighBits = 0x8080808080808080u;
  std::size_t at = 0;
  for (std::uint64_t word = 0; at + sizeof word <= count; at += sizeof word) {
    std::memcpy(&word, bytes + at, sizeof word);
    if ((word & kHighBits) != 0) break;
  }
  while (at < count && bytes[at] < 0x80) ++at;
  return at;
}

// Gives the bytes of the character that begins here, 0 when there is none; the ranges are Unicode's table
// 3-7.
std::size_t character_bytes(const std::uint8_t* bytes, std::size_t count) {
  const std::uint8_t lead = bytes[0];
  if (lead < 0xc2 || lead > 0xf4) return 0;
  const std::size_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (count < length) return 0;
  const std::uint8_t least = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  const std::uint8_t most = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  if (bytes[1] < least || bytes[1] > most) return 0;
  for (std::size_t at = 2; at < length; ++at)
    if ((bytes[at] & 0xc0) != 0x80) return 0;
  return length;
}

}  // namespace

bool is_utf8(std::string_view text) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(text.data());
  std::size_t at = ascii_prefix(bytes, text.size());
  while (at < text.size()) {
    const std::size_t length = character_bytes(bytes + at, text.size() - at);
    if (length == 0) return false;
    at += length;
    at += ascii_prefix(bytes + at, text.size() - at);
  }
  return true;
}

std::string escape_bytes(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(text.data());
  std::string escaped;
  for (std::size_t at = 0; at < text.size();) {
    const bool is_ascii = bytes[at] != 0 && bytes[at] < 0x80;
    const std::size_t length = is_ascii ? 1 : character_bytes(bytes + at, text.size() - at);
    escaped += text.substr(at, length);
    if (length == 0) escaped += {'\\', 'x', kDigits[bytes[at] >> 4], kDigits[bytes[at] & 15]};
    at += length == 0 ? 1 : length;
  }
  return escaped;
}

}  // namespace chunkhit
