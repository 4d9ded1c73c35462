// The shard container: a zstd seekable file, of images or matrices. Layout: schemas/shard.md.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

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
  std::uint64_t index_offset = 0;  ///< offset of the index's frame
  std::uint64_t index_bytes = 0;   ///< without the frame's own 8
  std::uint64_t index_xxh3 = 0;
  std::uint64_t file_bytes = 0;
};

/// Writes the header frame with its hash.
[[nodiscard]] ShardHeaderBytes encode_shard_header(const ShardHeader& header);

/// Reads a header frame and checks its hash, not its numbers; throws bad_data.
[[nodiscard]] ShardHeader decode_shard_header(const ShardHeaderBytes& bytes);

/// Counts the bytes between a frame that ends at `end` and the next one: 0, or at least 8.
[[nodiscard]] inline std::uint64_t shard_padding(const PartSpec& spec, std::uint64_t end) {
  if (!spec.payload().is_aligned()) return 0;
  const std::uint64_t gap = round_up(end, kShardAlignment) - end;
  return gap > 0 && gap < kSkippableHeaderBytes ? gap + kShardAlignment : gap;
}

/// Makes a padding frame of `bytes` in all, at least 8.
[[nodiscard]] ByteBuffer encode_shard_padding(std::uint64_t bytes);

/// Writes the 8 bytes before an index of `index_bytes`.
[[nodiscard]] std::array<std::uint8_t, kSkippableHeaderBytes> encode_index_frame_header(
    std::uint64_t index_bytes);

/// A frame of the file, in the seek table that ends it.
struct SeekEntry {
  std::uint32_t stored_bytes = 0;
  std::uint32_t raw_bytes = 0;  ///< 0: skippable
  bool operator==(const SeekEntry&) const = default;
};

[[nodiscard]] ByteBuffer encode_seek_table(std::span<const SeekEntry> frames);

/// The largest window that `zstd -dc` takes without being asked to: 128 MiB.
inline constexpr std::uint64_t kMaxShardChunkBytes = std::uint64_t{1} << 27;

/// Detects a shard by its first 32 bytes.
[[nodiscard]] bool is_shard(Bytes first_bytes);

/// Starts a shard aside; throws cannot_write.
[[nodiscard]] std::unique_ptr<ChunkWriter> create_shard(const std::string& path, const PartSpec& spec);

/// Returns whether a shard's header says that it holds matrices; throws bad_data when the header is damaged.
[[nodiscard]] bool is_matrix_shard(const std::string& path);

/// Opens a shard; throws bad_data when it is damaged, usage when the index of matrices needs more than
/// `memory_bytes`, bad_data for matrices unless `takes_matrices`: their index is not looked at then.
[[nodiscard]] std::unique_ptr<ChunkReader> open_shard(const std::string& path,
                                                      std::uint64_t memory_bytes = UINT64_MAX,
                                                      bool takes_matrices = true);

}  // namespace chunkhit
