// The frames of a shard that hold no chunk: header, padding, index and seek table. Layout: schemas/shard.md.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "store/part.h"

namespace chunkhit {

inline constexpr std::uint64_t kShardAlignment = 4096;
inline constexpr std::uint64_t kSkippableHeaderBytes = 8;

using ShardHeaderBytes = std::array<std::uint8_t, kShardAlignment>;

/// What the header frame says.
struct ShardHeader {
  PartSpec spec;
  std::uint64_t sample_count = 0;
  std::uint64_t chunk_count = 0;
  std::uint64_t index_offset = 0;  ///< of the index's frame
  std::uint64_t index_bytes = 0;   ///< without the frame's own 8
  std::uint64_t index_xxh3 = 0;
  std::uint64_t file_bytes = 0;
};

/// Writes the header frame with its hash.
[[nodiscard]] ShardHeaderBytes encode_shard_header(const ShardHeader& header);

/// Reads a header frame and checks its hash, not its numbers; throws bad_data.
[[nodiscard]] ShardHeader decode_shard_header(const ShardHeaderBytes& bytes);

/// Counts the bytes between a frame that ends at `end` and the next one: 0, or at least 8. Images are
/// aligned; rows of matrices are so small that gaps would count.
[[nodiscard]] inline std::uint64_t shard_padding(const PartSpec& spec, std::uint64_t end) {
  if (spec.matrix) return 0;
  const std::uint64_t gap = round_up(end, kShardAlignment) - end;
  return gap > 0 && gap < kSkippableHeaderBytes ? gap + kShardAlignment : gap;
}

/// Makes a padding frame of `bytes` in all, at least 8.
[[nodiscard]] ByteBuffer encode_shard_padding(std::uint64_t bytes);

/// Writes the 8 bytes before an index of `index_bytes`.
[[nodiscard]] std::array<std::uint8_t, kSkippableHeaderBytes> encode_index_frame_header(
    std::uint64_t index_bytes);

/// Makes the seek table that ends a shard of these chunks.
[[nodiscard]] ByteBuffer encode_seek_table(const PartSpec& spec, const std::vector<StoredChunk>& chunks,
                                           std::uint64_t index_bytes);

}  // namespace chunkhit
