// What a part of matrices says beside its chunks' bytes, as bytes. Layout: schemas/shard.md, "Index of
// matrices".
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "store/part.h"

namespace chunkhit {

/// Writes the index in pieces of bytes of one kind, which compress best apart; they lie one behind the other.
[[nodiscard]] std::vector<ByteBuffer> encode_matrix_index(const PartSpec& spec,
                                                          const std::vector<StoredChunk>& chunks,
                                                          const PartSamples& samples);

/// Reads an index into `contents`, whose spec was decoded before; throws bad_data when its counts do not fit
/// its bytes, usage when what they stand for needs more than `memory_bytes`.
void decode_matrix_index(Bytes index, PartContents& contents, std::uint64_t memory_bytes = UINT64_MAX);

/// Throws usage, naming the bytes, when an index needs more than `memory_bytes`.
void check_index_memory(std::uint64_t needed, std::uint64_t memory_bytes);

}  // namespace chunkhit
