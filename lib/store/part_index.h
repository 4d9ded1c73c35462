// What a part says beside its chunks' bytes, as bytes. Layout: schemas/shard.md, "Header frame" and "Index".
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "store/part.h"

namespace chunkhit {

/// Bytes 32–87 of a shard's header: pack id to chunk samples.
using PartSpecBytes = std::array<std::uint8_t, 56>;

/// Writes all of a spec but the names of classes and columns and the cache advice.
[[nodiscard]] PartSpecBytes encode_part_spec(const PartSpec& spec);

/// Reads what `encode_part_spec` wrote of images; throws bad_data. Names of classes and columns are in the
/// index.
[[nodiscard]] PartSpec decode_part_spec(const PartSpecBytes& bytes);

/// The same of matrices.
[[nodiscard]] PartSpec decode_matrix_part_spec(const PartSpecBytes& bytes);

/// Writes the names of `spec`, the chunks and what stands beside the pixels, all behind the bytes `before`.
[[nodiscard]] ByteBuffer encode_part_index(const PartSpec& spec, const std::vector<StoredChunk>& chunks,
                                           const PartSamples& samples, Bytes before = {});

/// Reads an index into `contents`, whose spec was decoded before; throws bad_data when its counts do not fit
/// its bytes.
void decode_part_index(Bytes index, PartContents& contents);

}  // namespace chunkhit
