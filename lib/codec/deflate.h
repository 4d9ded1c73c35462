// Deflate, a zlib stream a chunk; and LZF, as h5py compresses chunks (filter 32000 of HDF5), which is only
// decoded.
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace chunkhit {

/// Compresses into one zlib stream; `stored` is replaced.
void encode_deflate(Bytes raw, int level, ByteBuffer& stored);

/// Restores one zlib stream of exactly `raw.size()` bytes; throws bad_data when `stored` is not that.
void decode_deflate(Bytes stored, MutableBytes raw);

/// How many bytes a stream gives; throws bad_data where it is cut or copies from before its begin.
///
/// A stream is a row of runs. A control byte c below 32 is followed by c + 1 literal bytes. Otherwise c >> 5
/// and, where that is 7, another byte's number, and 2 are a length; the low five bits of c and the next byte,
/// which is the stream's last of the run, and 1 are how far back a copy of that length begins; it may overlap
/// itself.
[[nodiscard]] std::uint64_t lzf_content_bytes(Bytes stored);

/// Restores `raw.size()` bytes, as many as lzf_content_bytes says; throws bad_data when `stored` gives
/// others.
void decode_lzf(Bytes stored, MutableBytes raw);

}  // namespace chunkhit
