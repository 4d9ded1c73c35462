// Samples that lie in tiles: an array's chunks that split samples, hold few of them, or carry several
// filters. A chunk is then some rows of tiles, put together when it is decoded. schemas/images-hdf5.md,
// "Other files".
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/file.h"

namespace chunkhit {

inline constexpr std::uint64_t kFletcher32Bytes = 4;

/// Gives the bytes before their checksum; throws bad_data when it does not fit them.
[[nodiscard]] Bytes check_fletcher32(Bytes stored);

/// One tile as it lies in the file.
struct StoredTile {
  std::uint64_t offset = 0;
  std::uint32_t stored_bytes = 0;  ///< 0: never written, all of it is the fill value
  std::uint32_t filter_mask = 0;   ///< bit i: filter i was left out
};

/// An array of bytes cut into equal tiles; those at the upper edges reach over them.
struct TileGrid {
  std::vector<std::uint64_t> array_sides;  ///< samples first; trailing sides that no tile splits are joined
  std::vector<std::uint64_t> tile_sides;
  std::vector<std::string_view> filters;  ///< deflate, zstd or fletcher32, in the order of encoding
  std::uint8_t fill_value = 0;
  std::uint64_t rows_in_chunk = 1;  ///< rows of tiles along the samples
  std::vector<StoredTile> tiles;    ///< the last side's index runs fastest

  [[nodiscard]] std::uint64_t tile_bytes() const;
  /// Counts the tiles of one row: those that hold the same samples.
  [[nodiscard]] std::uint64_t row_tiles() const;
  [[nodiscard]] std::span<const StoredTile> tiles_of(std::size_t chunk_index) const;
};

/// Joins trailing sides that tiles do not split; of a grid without tiles yet.
void join_whole_sides(TileGrid& grid);

/// Whether the bytes of the chunk's samples lie in the file as they are, one after the other.
[[nodiscard]] bool lies_raw(const TileGrid& grid, std::size_t chunk_index);

/// Reads the stored bytes of a chunk's tiles, one after the other.
void fetch_tiles(const InputFile& file, std::span<const StoredTile> tiles, MutableBytes stored);

/// Puts a chunk's samples together from what `fetch_tiles` read; `raw` holds them and nothing else. Throws
/// bad_data.
void decode_tiles(const TileGrid& grid, std::size_t chunk_index, Bytes stored, MutableBytes raw);

}  // namespace chunkhit
