#include "store/fletcher32.h"

#include <algorithm>
#include <string>

#include "chunkhit/error.h"

namespace chunkhit {
namespace {

// As many 16-bit words as two 32-bit sums hold without overflow (Fletcher's usual block).
constexpr std::size_t kWordsAtOnce = 360;

std::uint32_t fold(std::uint32_t sum) { return (sum & 0xffff) + (sum >> 16); }

/// Fletcher's sum over big-endian 16-bit words; a last odd byte is the high one of its word.
std::uint32_t fletcher32(Bytes bytes) {
  std::uint32_t low = 0;
  std::uint32_t high = 0;
  std::size_t at = 0;
  while (at + 1 < bytes.size()) {
    const std::size_t end = at + std::min((bytes.size() - at) / 2, kWordsAtOnce) * 2;
    for (; at < end; at += 2) {
      low += static_cast<std::uint32_t>(bytes[at] << 8 | bytes[at + 1]);
      high += low;
    }
    low = fold(low);
    high = fold(high);
  }
  if (at < bytes.size()) {
    low = fold(low + static_cast<std::uint32_t>(bytes[at] << 8));
    high = fold(high + low);
  }
  return fold(high) << 16 | fold(low);
}

}  // namespace

Bytes check_fletcher32(Bytes stored) {
  if (stored.size() < kFletcher32Bytes) throw Error(ErrorCode::bad_data, "ends before its Fletcher checksum");
  const Bytes bytes = stored.first(stored.size() - kFletcher32Bytes);
  const auto expected = load_little<std::uint32_t>(stored.data() + bytes.size());
  const std::uint32_t found = fletcher32(bytes);
  if (found != expected)
    throw Error(ErrorCode::bad_data,
                "Fletcher checksum " + std::to_string(found) + ", expected " + std::to_string(expected));
  return bytes;
}

}  // namespace chunkhit
