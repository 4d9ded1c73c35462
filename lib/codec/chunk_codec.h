// Codecs for the bytes of a chunk: raw samples ↔ stored bytes. Their layouts are in schemas/codecs.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "types/sample_shape.h"

namespace chunkhit {

/// Compresses and restores chunks; one static row per filter.
struct ChunkCodec {
  std::string_view name;
  int default_level;
  int min_level;
  int max_level;
  /// Encodes whole samples of `shape` into `stored` (replaced). `raw.size()` is a multiple of the sample's
  /// bytes.
  void (*encode)(Bytes raw, const SampleShape& shape, int level, ByteBuffer& stored);
  /// Restores exactly `raw.size()` bytes; throws bad_data when the stored bytes do not give them.
  void (*decode)(Bytes stored, const SampleShape& shape, MutableBytes raw);
};

/// All codecs: none, deflate (zlib stream), zstd (one frame with its content size), photo (predictor, then
/// zstd).
[[nodiscard]] std::span<const ChunkCodec> chunk_codecs();

/// Finds a codec by name; throws usage with the list of valid names.
[[nodiscard]] const ChunkCodec& chunk_codec(std::string_view name);

}  // namespace chunkhit
