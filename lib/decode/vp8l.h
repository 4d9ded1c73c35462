// What a lossless WebP demands before its first pixel, for libwebp tells no memory.
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace chunkhit {

/// Bounds the memory that libwebp takes for the Huffman codes of a VP8L stream (RFC 9649, 3.4) of
/// width × height pixels: up to 65,536 groups of codes in a file of 300 KB. The stream begins behind the
/// size. Throws ImageError where it ends early or is malformed.
[[nodiscard]] std::uint64_t max_huffman_bytes(Bytes stream, std::uint32_t width, std::uint32_t height);

}  // namespace chunkhit
