// What a part of matrices says beside its chunks' bytes, as bytes. Layout: schemas/shard.md, "Index of
// matrices".
#pragma once

#include <vector>

#include "base/bytes.h"
#include "store/part.h"

namespace chunkhit {

/// Writes the index in pieces of bytes of one kind, which compress best apart; they lie one behind the other.
[[nodiscard]] std::vector<ByteBuffer> encode_matrix_index(const PartSpec& spec,
                                                          const std::vector<StoredChunk>& chunks,
                                                          const PartSamples& samples);

/// Reads an index into `contents`, whose spec was decoded before; throws bad_data when its counts do not fit
/// its bytes.
void decode_matrix_index(Bytes index, PartContents& contents);

}  // namespace chunkhit
