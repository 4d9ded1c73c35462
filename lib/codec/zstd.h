// Zstandard, one frame at a time. Layout: schemas/codecs.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.h"

namespace chunkhit {

/// Compresses into one frame with its content size and a checksum; `stored` is replaced.
void encode_zstd(Bytes raw, int level, ByteBuffer& stored);

/// The same as one of the frames that hold `all_bytes` together, behind those that are in `stored`.
void append_zstd(Bytes raw, std::uint64_t all_bytes, int level, ByteBuffer& stored);

/// Appends a frame whose pieces of `piece_bytes`, at least 1, have blocks of their own, without a search for
/// matches.
void append_zstd_literals(Bytes raw, std::uint64_t piece_bytes, ByteBuffer& stored);

struct ZstdFrame {
  std::size_t stored_bytes = 0;
  std::uint64_t raw_bytes = 0;
};

/// Finds the frame that `stored` begins with, by its headers; throws bad_data when there is none, or it does
/// not say how many bytes it holds.
[[nodiscard]] ZstdFrame first_zstd_frame(Bytes stored);

/// What a thread holds to compress so many bytes at once.
[[nodiscard]] std::uint64_t zstd_context_bytes(int level, std::uint64_t raw_bytes);

/// The same of consecutive pieces, each in blocks of its own: where neighbours are of
/// different kinds, each block's statistics fit it better. Level 1 is for bytes that seldom repeat
/// themselves.
void encode_zstd(std::span<const Bytes> pieces, int level, ByteBuffer& stored);

/// What a frame says that it holds, in bytes; throws bad_data when it does not say.
[[nodiscard]] std::uint64_t zstd_content_bytes(Bytes stored);

/// Restores one frame of exactly `raw.size()` bytes; throws bad_data when `stored` is not that. `checks`:
/// compares the frame's checksum.
void decode_zstd(Bytes stored, MutableBytes raw, bool checks = true);

/// Restores the first bytes of a frame whose first bytes are `stored`; returns how many these give, at most
/// raw.size(). Nothing is compared with a checksum. Throws bad_data for what is no frame.
[[nodiscard]] std::size_t decode_zstd_head(Bytes stored, MutableBytes raw);

}  // namespace chunkhit
