#include "store/tile_grid.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "chunkhit/error.h"
#include "codec/chunk_codec.h"

namespace chunkhit {
namespace {

// As many 16-bit words as two 32-bit sums hold without overflow (Fletcher's usual block).
constexpr std::size_t kWordsAtOnce = 360;

std::uint32_t fold(std::uint32_t sum) { return (sum & 0xffff) + (sum >> 16); }

/// Fletcher's sum over big-endian 16-bit words; a last odd byte is the high one of its word.
std::uint32_t fletcher32(Bytes bytes) {
  std::uint32_t low = 0;
  std::uint32_t high = 0;
  std::size_t at = 0;
  while (at + 1 < bytes.size()) {
    const std::size_t end = at + std::min((bytes.size() - at) / 2, kWordsAtOnce) * 2;
    for (; at < end; at += 2) {
      low += static_cast<std::uint32_t>(bytes[at] << 8 | bytes[at + 1]);
      high += low;
    }
    low = fold(low);
    high = fold(high);
  }
  if (at < bytes.size()) {
    low = fold(low + static_cast<std::uint32_t>(bytes[at] << 8));
    high = fold(high + low);
  }
  return fold(high) << 16 | fold(low);
}

}  // namespace

Bytes check_fletcher32(Bytes stored) {
  if (stored.size() < kFletcher32Bytes) throw Error(ErrorCode::bad_data, "ends before its Fletcher checksum");
  const Bytes bytes = stored.first(stored.size() - kFletcher32Bytes);
  const auto expected = load_little<std::uint32_t>(stored.data() + bytes.size());
  const std::uint32_t found = fletcher32(bytes);
  if (found != expected)
    throw Error(ErrorCode::bad_data,
                "Fletcher checksum " + std::to_string(found) + ", expected " + std::to_string(expected));
  return bytes;
}

namespace {

using Sides = std::span<const std::uint64_t>;

std::uint64_t product(Sides sides) {
  std::uint64_t product = 1;
  for (const std::uint64_t side : sides) product *= side;
  return product;
}

std::uint64_t tiles_along(const TileGrid& grid, std::size_t side) {
  return (grid.array_sides[side] + grid.tile_sides[side] - 1) / grid.tile_sides[side];
}

/// Copies the corner of `extents` bytes of one array into another.
void copy_box(Sides extents, Sides from_sides, const std::uint8_t* from, Sides to_sides, std::uint8_t* to) {
  if (extents.size() == 1) {
    std::memcpy(to, from, extents[0]);
    return;
  }
  const std::uint64_t from_step = product(from_sides.subspan(1));
  const std::uint64_t to_step = product(to_sides.subspan(1));
  if (extents.size() == 2 && extents[1] == 1) {  // a memcpy a byte costs ten times as much
    for (std::uint64_t i = 0; i < extents[0]; ++i) to[i * to_step] = from[i * from_step];
    return;
  }
  for (std::uint64_t i = 0; i < extents[0]; ++i)
    copy_box(extents.subspan(1), from_sides.subspan(1), from + i * from_step, to_sides.subspan(1),
             to + i * to_step);
}

bool is_left_out(const StoredTile& tile, std::size_t filter) { return (tile.filter_mask >> filter & 1) != 0; }

/// Counts the bytes that filters before `filter` add to a tile's.
std::uint64_t checksum_bytes(const TileGrid& grid, const StoredTile& tile, std::size_t filter) {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < filter; ++i)
    if (grid.filters[i] == "fletcher32" && !is_left_out(tile, i)) bytes += kFletcher32Bytes;
  return bytes;
}

/// Undoes a tile's filters; the result lies in `stored` or in `room`.
Bytes undo_filters(const TileGrid& grid, const StoredTile& tile, Bytes stored, ByteBuffer& room) {
  for (std::size_t i = grid.filters.size(); i-- > 0;) {
    const std::string_view name = grid.filters[i];
    if (is_left_out(tile, i)) continue;
    if (name == "fletcher32") {
      stored = check_fletcher32(stored);
      continue;
    }
    room.resize(grid.tile_bytes() + checksum_bytes(grid, tile, i));
    chunk_codec(name).decode(stored, {}, room);
    stored = room;
  }
  if (stored.size() != grid.tile_bytes())
    throw Error(ErrorCode::bad_data, "a tile of " + std::to_string(stored.size()) + " bytes, expected " +
                                         std::to_string(grid.tile_bytes()));
  return stored;
}

/// Where a tile lies among the samples of its chunk, and how much of it is inside of the array.
struct TileBox {
  std::vector<std::uint64_t> extents;
  std::uint64_t begin = 0;  ///< of its first byte in the chunk
};

/// Fills a box, whose memory it uses again.
void place_tile(const TileGrid& grid, std::uint64_t tile_in_chunk, Sides chunk_sides, TileBox& box) {
  box.extents.resize(chunk_sides.size());
  box.begin = 0;
  std::uint64_t step = 1;
  for (std::size_t side = chunk_sides.size(); side-- > 0;) {
    const std::uint64_t along = side == 0 ? grid.rows_in_chunk : tiles_along(grid, side);
    const std::uint64_t begin = tile_in_chunk % along * grid.tile_sides[side];
    tile_in_chunk /= along;
    box.extents[side] = std::min(grid.tile_sides[side], chunk_sides[side] - begin);
    box.begin += begin * step;
    step *= chunk_sides[side];
  }
}

/// Whether one filter gives the tile's bytes as they lie among the samples.
bool decodes_in_place(const TileGrid& grid, const StoredTile& tile, const TileBox& box) {
  return tile.stored_bytes > 0 && grid.filters.size() == 1 && tile.filter_mask == 0 &&
         grid.filters[0] != "fletcher32" && box.extents == grid.tile_sides &&
         std::equal(grid.tile_sides.begin() + 1, grid.tile_sides.end(), grid.array_sides.begin() + 1);
}

void decode_tile(const TileGrid& grid, const StoredTile& tile, const TileBox& box, Bytes stored,
                 Sides chunk_sides, MutableBytes raw) {
  if (decodes_in_place(grid, tile, box))
    return chunk_codec(grid.filters[0]).decode(stored, {}, raw.subspan(box.begin, grid.tile_bytes()));
  thread_local ByteBuffer room;
  Bytes bytes = room;
  if (tile.stored_bytes == 0) {
    room.assign(grid.tile_bytes(), grid.fill_value);
    bytes = room;
  } else {
    bytes = undo_filters(grid, tile, stored, room);
  }
  copy_box(box.extents, grid.tile_sides, bytes.data(), chunk_sides, raw.data() + box.begin);
}

}  // namespace

std::uint64_t TileGrid::tile_bytes() const { return product(tile_sides); }

std::uint64_t TileGrid::row_tiles() const {
  std::uint64_t count = 1;
  for (std::size_t side = 1; side < array_sides.size(); ++side) count *= tiles_along(*this, side);
  return count;
}

std::span<const StoredTile> TileGrid::tiles_of(std::size_t chunk_index) const {
  const std::uint64_t count = rows_in_chunk * row_tiles();
  const std::uint64_t first = chunk_index * count;
  return std::span(tiles).subspan(first, std::min(count, tiles.size() - first));
}

void join_whole_sides(TileGrid& grid) {
  auto& array = grid.array_sides;
  auto& tile = grid.tile_sides;
  while (array.size() > 2 && array.back() == tile.back()) {
    array[array.size() - 2] *= array.back();
    tile[tile.size() - 2] *= tile.back();
    array.pop_back();
    tile.pop_back();
  }
}

bool lies_raw(const TileGrid& grid, std::size_t chunk_index) {
  const std::span<const StoredTile> tiles = grid.tiles_of(chunk_index);
  const std::uint64_t bytes = grid.tile_bytes();
  if (grid.array_sides.size() > 2 || grid.row_tiles() != 1 ||
      grid.array_sides.back() != grid.tile_sides.back())
    return false;
  const std::uint32_t all_left_out =
      static_cast<std::uint32_t>((std::uint64_t{1} << grid.filters.size()) - 1);
  for (std::size_t i = 0; i < tiles.size(); ++i)
    if (tiles[i].filter_mask != all_left_out || tiles[i].stored_bytes != bytes ||
        tiles[i].offset != tiles[0].offset + i * bytes)
      return false;
  return true;
}

void fetch_tiles(const InputFile& file, std::span<const StoredTile> tiles, MutableBytes stored) {
  std::size_t at = 0;
  for (std::size_t i = 0; i < tiles.size();) {
    const std::uint64_t offset = tiles[i].offset;
    std::uint64_t bytes = tiles[i++].stored_bytes;
    while (i < tiles.size() && tiles[i].offset == offset + bytes) bytes += tiles[i++].stored_bytes;
    if (bytes > 0) file.read_at(offset, stored.subspan(at, bytes));
    at += bytes;
  }
}

void decode_tiles(const TileGrid& grid, std::size_t chunk_index, Bytes stored, MutableBytes raw) {
  // Kept, so that a thread allocates once.
  thread_local std::vector<std::uint64_t> chunk_sides;
  thread_local TileBox box;
  chunk_sides = grid.array_sides;
  chunk_sides[0] = raw.size() / product(Sides(chunk_sides).subspan(1));
  const std::span<const StoredTile> tiles = grid.tiles_of(chunk_index);
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    const Bytes of_tile = stored.first(tiles[i].stored_bytes);
    place_tile(grid, i, chunk_sides, box);
    decode_tile(grid, tiles[i], box, of_tile, chunk_sides, raw);
    stored = stored.subspan(of_tile.size());
  }
}

}  // namespace chunkhit
