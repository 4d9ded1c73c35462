// Deflate in a zlib stream (RFC 1950), as HDF5's own filter has it. Layout: schemas/codecs.md.
#pragma once

#include "base/bytes.h"

namespace chunkhit {

/// Compresses into one zlib stream; `stored` is replaced.
void encode_deflate(Bytes raw, int level, ByteBuffer& stored);

/// Restores one zlib stream of exactly `raw.size()` bytes; throws bad_data when `stored` is not that.
void decode_deflate(Bytes stored, MutableBytes raw);

}  // namespace chunkhit
