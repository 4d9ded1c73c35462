// The shard container: a zstd seekable file. Layout: schemas/shard.md.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/bytes.h"
#include "store/part.h"

namespace chunkhit {

/// The largest window that `zstd -dc` takes without being asked to: 128 MiB.
inline constexpr std::uint64_t kMaxShardChunkBytes = std::uint64_t{1} << 27;

/// Detects a shard by its first 32 bytes.
[[nodiscard]] bool is_shard(Bytes first_bytes);

/// Starts a shard aside; throws cannot_write.
[[nodiscard]] std::unique_ptr<ChunkWriter> create_shard(const std::string& path, const PartSpec& spec);

/// Returns whether a shard's header says that it holds matrices; throws bad_data when the header is damaged.
[[nodiscard]] bool is_matrix_shard(const std::string& path);

/// Opens a shard; throws bad_data when it is damaged, usage when the index of matrices needs more than
/// `memory_bytes`.
[[nodiscard]] std::unique_ptr<ChunkReader> open_shard(const std::string& path,
                                                      std::uint64_t memory_bytes = UINT64_MAX);

}  // namespace chunkhit
