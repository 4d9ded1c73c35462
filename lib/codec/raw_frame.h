// A zstd frame of raw blocks, so that raw bytes lie in a zstd stream and are found by arithmetic. Layout:
// schemas/shard.md, "Raw chunks".
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.h"

namespace chunkhit {

inline constexpr std::uint64_t kRawBlockBytes = 131072;
inline constexpr std::uint64_t kRawFrameHeaderBytes = 13;
inline constexpr std::uint64_t kRawBlockHeaderBytes = 3;
inline constexpr std::uint64_t kRawFrameChecksumBytes = 4;

/// Counts the bytes of the frame of `raw_bytes` bytes, at least 1.
[[nodiscard]] constexpr std::uint64_t raw_frame_bytes(std::uint64_t raw_bytes) {
  const std::uint64_t blocks = (raw_bytes + kRawBlockBytes - 1) / kRawBlockBytes;
  return kRawFrameHeaderBytes + blocks * kRawBlockHeaderBytes + raw_bytes + kRawFrameChecksumBytes;
}

/// Finds raw byte `at` in its frame.
[[nodiscard]] constexpr std::uint64_t raw_frame_position(std::uint64_t at) {
  return kRawFrameHeaderBytes + kRawBlockHeaderBytes * (at / kRawBlockBytes + 1) + at;
}

/// The bytes of a raw frame that stand around the raw bytes.
struct RawFrameParts {
  std::array<std::uint8_t, kRawFrameHeaderBytes> header;
  std::vector<std::array<std::uint8_t, kRawBlockHeaderBytes>> block_headers;
  std::array<std::uint8_t, kRawFrameChecksumBytes> checksum;
};

/// Makes the frame around raw bytes, at least 1; they themselves go between the block headers,
/// `kRawBlockBytes` each.
[[nodiscard]] RawFrameParts frame_raw_bytes(Bytes raw);

/// Copies the raw bytes out of their frame after checking all that stands around them but the checksum;
/// throws bad_data.
void decode_raw_frame(Bytes frame, MutableBytes raw);

}  // namespace chunkhit
