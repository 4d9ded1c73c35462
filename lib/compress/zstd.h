// Zstandard, one frame at a time. Layout: schemas/filters.md.
#pragma once

#include "base/bytes.h"

namespace chunkhit {

/// Compresses into one frame with its content size and a checksum; `stored` is replaced.
void encode_zstd(Bytes raw, int level, ByteBuffer& stored);

/// Restores one frame of exactly `raw.size()` bytes; throws bad_data when `stored` is not that.
void decode_zstd(Bytes stored, MutableBytes raw);

}  // namespace chunkhit
