#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/child_limits.h"
#include "store/hdf5_external.h"
#include "store/hdf5_part.h"

namespace chunkhit {
namespace {

// An array in one piece is cut to chunks of about this size.
constexpr std::uint64_t kCutBytes = 1 << 20;
// Chunks of the file that are smaller are taken several at a time.
constexpr std::uint64_t kMinChunkBytes = 1 << 16;
// Finding one takes about a microsecond, remembering it 16 bytes.
constexpr std::uint64_t kMaxTiles = 1 << 24;
constexpr std::uint64_t kTilesAtOnce = 1 << 16;

std::uint64_t ceiling(std::uint64_t value, std::uint64_t step) { return value / step + (value % step != 0); }

std::vector<StoredChunk> cut_samples(std::uint64_t sample_count, std::uint64_t chunk_samples,
                                     std::uint64_t sample_bytes) {
  std::vector<StoredChunk> chunks(ceiling(sample_count, chunk_samples));
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    chunks[i].first_sample = i * chunk_samples;
    chunks[i].sample_count = std::min(chunk_samples, sample_count - chunks[i].first_sample);
    chunks[i].raw_bytes = chunks[i].sample_count * sample_bytes;
  }
  return chunks;
}

/// Cuts an array in one piece, whose bytes the file must have before memory is taken for the chunks.
void cut_one_piece(Hdf5Source& source, const Hdf5Array& array, PartContents& contents) {
  const std::uint64_t sample_bytes = contents.spec.sample.byte_count();
  const std::uint64_t samples = array.dimensions[0];
  if (array.offset > source.byte_count() || samples > (source.byte_count() - array.offset) / sample_bytes)
    source.check().refuse(array.name + " lies outside of the file");
  contents.spec.chunk_samples = std::max<std::uint64_t>(1, kCutBytes / sample_bytes);
  contents.chunks = cut_samples(samples, contents.spec.chunk_samples, sample_bytes);
  for (StoredChunk& chunk : contents.chunks) {
    chunk.offset = array.offset + chunk.first_sample * sample_bytes;
    chunk.stored_bytes = chunk.raw_bytes;
    chunk.filtered = false;
  }
}

/// Multiplies sides; refuses what is larger than a chunk may be.
std::uint64_t checked_bytes(const Hdf5Check& check, const Hdf5Array& array,
                            const std::vector<std::uint64_t>& sides) {
  std::uint64_t bytes = 1;
  for (const std::uint64_t side : sides) {
    if (side == 0 || bytes > kMaxHdf5ChunkBytes / side)
      check.refuse(array.name + " has chunks of more than " + std::to_string(kMaxHdf5ChunkBytes) + " bytes");
    bytes *= side;
  }
  return bytes;
}

std::uint64_t checked_tile_count(const Hdf5Check& check, const Hdf5Array& array,
                                 const std::vector<std::uint64_t>& tile) {
  std::uint64_t count = 1;
  for (std::size_t side = 0; side < tile.size(); ++side) {
    const std::uint64_t along = ceiling(array.dimensions[side], tile[side]);
    if (along != 0 && count > kMaxTiles / along)
      check.refuse(array.name + " has more than " + std::to_string(kMaxTiles) + " chunks");
    count *= along;
  }
  return count;
}

/// Moves to the next chunk's first element, the last side fastest.
void advance(std::vector<hsize_t>& first, const Hdf5Array& array) {
  for (std::size_t side = first.size(); side-- > 0;) {
    first[side] += array.chunk[side];
    if (first[side] < array.dimensions[side] || side == 0) return;
    first[side] = 0;
  }
}

bool is_partial(const std::vector<hsize_t>& first, const Hdf5Array& array) {
  for (std::size_t side = 0; side < first.size(); ++side)
    if (array.dimensions[side] - first[side] < array.chunk[side]) return true;
  return false;
}

/// Keeps the bits of the filters that are undone; shuffling bytes of elements of one byte changes nothing.
std::uint32_t kept_mask(std::uint32_t mask, const Hdf5Array& array) {
  std::uint32_t kept = 0;
  unsigned bit = 0;
  for (std::size_t i = 0; i < array.filters.size() && i < 32; ++i)
    if (array.filters[i] != "shuffle") kept |= (mask >> i & 1u) << bit++;
  return kept;
}

StoredTile find_tile(Hdf5Source& source, hid_t dataset, const Hdf5Array& array,
                     const std::vector<hsize_t>& first) {
  const std::optional<Hdf5ChunkPlace> place = source.find_chunk(dataset, first);
  if (!place) return {};
  if (place->stored_bytes > UINT32_MAX) source.check().refuse(array.name + " has a chunk of more than 4 GiB");
  const bool is_filtered = array.filters_partial_chunks || !is_partial(first, array);
  return {place->offset, static_cast<std::uint32_t>(place->stored_bytes),
          kept_mask(is_filtered ? place->filter_mask : UINT32_MAX, array)};
}

/// Finds all tiles, and makes sure that those that are missing were never written.
void find_tiles(Hdf5Source& source, hid_t dataset, const Hdf5Array& array, std::vector<StoredTile>& tiles) {
  std::vector<hsize_t> first(array.chunk.size());
  hsize_t found = 0;
  std::uint64_t looked_up = 0;
  for (StoredTile& tile : tiles) {
    tile = find_tile(source, dataset, array, first);
    found += tile.stored_bytes > 0 ? 1 : 0;
    if (++looked_up % kTilesAtOnce == 0) allow_more_time();
    advance(first, array);
  }
  if (found == tiles.size()) return;
  hsize_t written = 0;
  const Hdf5Handle space(source.check()(H5Dget_space(dataset), "ask for a dataspace"), H5Sclose);
  source.check()(H5Dget_num_chunks(dataset, space.get(), &written), "count the chunks");
  if (found != written)
    source.check().refuse(array.name + " has " + std::to_string(found) +
                          " chunks in their places, expected " + std::to_string(written));
}

/// The grid of a chunked array, or of one in one piece that was never written; without its tiles.
TileGrid empty_grid(const Hdf5Array& array, const std::vector<std::uint64_t>& tile) {
  TileGrid grid;
  grid.array_sides = array.dimensions;
  grid.tile_sides = tile;
  if (tile.size() == 1) {
    grid.array_sides.push_back(1);
    grid.tile_sides.push_back(1);
  }
  for (const std::string_view filter : array.filters)
    if (filter != "shuffle") grid.filters.push_back(filter);
  grid.fill_value = array.fill_value;
  join_whole_sides(grid);
  return grid;
}

/// Makes chunks of rows of tiles; those whose samples lie in the file as they are need no tiles.
void chunks_of_tiles(PartContents& contents) {
  const TileGrid& grid = *contents.tiles;
  for (std::size_t i = 0; i < contents.chunks.size(); ++i) {
    StoredChunk& chunk = contents.chunks[i];
    const std::span<const StoredTile> tiles = grid.tiles_of(i);
    chunk.offset = tiles[0].offset;
    chunk.filtered = !lies_raw(grid, i);
    if (!chunk.filtered) chunk.stored_bytes = chunk.raw_bytes;
    if (chunk.filtered)
      for (const StoredTile& tile : tiles) chunk.stored_bytes += tile.stored_bytes;
  }
  if (std::ranges::none_of(contents.chunks, &StoredChunk::filtered)) contents.tiles.reset();
}

}  // namespace

void lay_out_chunks(Hdf5Source& source, hid_t dataset, const Hdf5Array& array, PartContents& contents) {
  if (array.chunk.empty() && array.is_written) return cut_one_piece(source, array, contents);
  const Hdf5Check& check = source.check();
  PartSpec& spec = contents.spec;
  const std::uint64_t samples = array.dimensions[0];
  const std::uint64_t sample_bytes = spec.sample.byte_count();
  std::vector<std::uint64_t> tile = array.chunk;
  if (tile.empty()) {
    tile = array.dimensions;
    tile[0] = std::max<std::uint64_t>(1, kCutBytes / sample_bytes);
  }
  checked_bytes(check, array, tile);
  const std::uint64_t tile_count = checked_tile_count(check, array, tile);
  const std::uint64_t row_samples = std::min(tile[0], std::max<std::uint64_t>(samples, 1));
  const std::uint64_t row_bytes = checked_bytes(check, array, {row_samples, sample_bytes});
  TileGrid grid = empty_grid(array, tile);
  grid.rows_in_chunk = std::max<std::uint64_t>(1, kMinChunkBytes / row_bytes);
  grid.tiles.resize(tile_count);
  if (array.is_written) find_tiles(source, dataset, array, grid.tiles);
  for (const std::string_view filter : grid.filters)
    if (filter != "fletcher32") spec.codec = filter;
  spec.chunk_samples = row_samples * grid.rows_in_chunk;
  contents.tiles = std::move(grid);
  contents.chunks = cut_samples(samples, spec.chunk_samples, sample_bytes);
  chunks_of_tiles(contents);
}

}  // namespace chunkhit
