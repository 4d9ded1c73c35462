// Filters on the bytes of a chunk: raw samples ↔ stored bytes. Their layouts are in schemas/filters.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "types/sample_shape.h"

namespace chunkhit {

/// Compresses and restores chunks; one static row per filter.
struct ChunkFilter {
  std::string_view name;
  int default_level;
  int least_level;
  int most_level;
  /// Encodes whole samples of `shape` into `stored` (replaced). `raw.size()` is a multiple of the sample's
  /// bytes.
  void (*encode)(Bytes raw, const SampleShape& shape, int level, ByteBuffer& stored);
  /// Restores exactly `raw.size()` bytes; throws bad_data when the stored bytes do not give them.
  void (*decode)(Bytes stored, const SampleShape& shape, MutableBytes raw);
};

/// All filters: none, deflate (zlib stream), zstd (one frame with its content size), photo (predictor, then
/// zstd).
[[nodiscard]] std::span<const ChunkFilter> chunk_filters();

/// Finds a filter by name; throws usage with the list of valid names.
[[nodiscard]] const ChunkFilter& chunk_filter(std::string_view name);

}  // namespace chunkhit
