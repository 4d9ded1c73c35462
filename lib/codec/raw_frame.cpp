#include "codec/raw_frame.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "chunkhit/error.h"

namespace chunkhit {
namespace {

constexpr std::uint32_t kZstdMagic = 0xfd2fb528;
// Single segment, 8 bytes of content size, content checksum, no dictionary.
constexpr std::uint8_t kFrameDescriptor = 0xe4;

[[noreturn]] void throw_bad_frame(const std::string& what) {
  throw Error(ErrorCode::bad_data, "raw zstd frame: " + what);
}

std::array<std::uint8_t, kRawFrameHeaderBytes> frame_header(std::uint64_t raw_bytes) {
  std::array<std::uint8_t, kRawFrameHeaderBytes> header{};
  store_little(header.data(), kZstdMagic);
  header[4] = kFrameDescriptor;
  store_little(header.data() + 5, raw_bytes);
  return header;
}

/// Bit 0: last block; bits 1–2: kind 0, raw; from bit 3 on: bytes.
std::array<std::uint8_t, kRawBlockHeaderBytes> block_header(std::uint64_t bytes, bool last) {
  const std::uint64_t bits = bytes << 3 | (last ? 1 : 0);
  return {static_cast<std::uint8_t>(bits), static_cast<std::uint8_t>(bits >> 8),
          static_cast<std::uint8_t>(bits >> 16)};
}

}  // namespace

RawFrameParts frame_raw_bytes(Bytes raw) {
  RawFrameParts parts;
  parts.header = frame_header(raw.size());
  for (std::uint64_t at = 0; at < raw.size(); at += kRawBlockBytes) {
    const auto bytes = std::min<std::uint64_t>(kRawBlockBytes, raw.size() - at);
    parts.block_headers.push_back(block_header(bytes, at + bytes == raw.size()));
  }
  store_little(parts.checksum.data(), static_cast<std::uint32_t>(XXH64(raw.data(), raw.size(), 0)));
  return parts;
}

void decode_raw_frame(Bytes frame, MutableBytes raw) {
  if (raw.empty() || frame.size() != raw_frame_bytes(raw.size()))
    throw_bad_frame("has " + std::to_string(frame.size()) + " bytes, expected " +
                    std::to_string(raw_frame_bytes(raw.size())));
  const auto header = frame_header(raw.size());
  if (!std::equal(header.begin(), header.end(), frame.begin())) throw_bad_frame("another frame header");
  for (std::uint64_t at = 0; at < raw.size(); at += kRawBlockBytes) {
    const auto bytes = std::min<std::uint64_t>(kRawBlockBytes, raw.size() - at);
    const std::uint8_t* from = frame.data() + raw_frame_position(at);
    const auto expected = block_header(bytes, at + bytes == raw.size());
    if (!std::equal(expected.begin(), expected.end(), from - kRawBlockHeaderBytes))
      throw_bad_frame("another header of block " + std::to_string(at / kRawBlockBytes));
    std::memcpy(raw.data() + at, from, bytes);
  }
}

}  // namespace chunkhit
