#include "store/hdf5/external.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/hdf5/attributes.h"
#include "store/hdf5/image_part.h"
#include "store/hdf5/images.h"
#include "store/hdf5/index.h"
#include "store/hdf5/numbers.h"
#include "store/hdf5/texts.h"
#include "store/part_rules.h"

namespace chunkhit {

namespace {

constexpr const char* kNameAdvice = "; images and labels (`images`, `labels`) name those to read";
// As many channels as images have; a side of so few pixels is unlikely.
constexpr std::uint64_t kMaxChannels = 4;

/// Reads the attribute `layout` as our parts have it; external files may have another meaning there.
std::string said_layout(const Hdf5Check& check, hid_t images) {
  if (check(H5Aexists(images, "layout"), "look for an attribute") == 0) return "";
  const Hdf5Handle attribute(check(H5Aopen(images, "layout", H5P_DEFAULT), "open an attribute"), H5Aclose);
  const Hdf5Handle type(check(H5Aget_type(attribute.get()), "ask for an attribute's type"), H5Tclose);
  return H5Tis_variable_str(type.get()) > 0 ? read_text_attribute(check, images, "layout") : "";
}

/// Where nothing is said, few channels tell which side they are.
Layout guess_layout(const Hdf5Check& check, hid_t images, const std::vector<std::uint64_t>& dimensions) {
  if (dimensions.size() != 4) return Layout::nhwc;
  const std::string said = said_layout(check, images);
  if (said == kLayoutNames[0]) return Layout::nhwc;
  if (said == kLayoutNames[1]) return Layout::nchw;
  if (dimensions[3] <= kMaxChannels) return Layout::nhwc;
  return dimensions[1] <= kMaxChannels ? Layout::nchw : Layout::nhwc;
}

/// The sample's shape: (H, W, C), (C, H, W), (H, W), (W) or one value; of more dimensions the first ones make
/// the height.
SampleShape shape_of(const Hdf5Check& check, hid_t images, const Hdf5Array& array) {
  std::vector<std::uint64_t> sides(array.dimensions.begin() + 1, array.dimensions.end());
  const Layout layout = guess_layout(check, images, array.dimensions);
  if (sides.size() < 3) sides.push_back(1);
  while (sides.size() < 3) sides.insert(sides.begin(), 1);
  for (const std::uint64_t side : sides)
    if (side > UINT32_MAX) check.refuse(array.name + " has a side of " + std::to_string(side));
  while (sides.size() > 3) {
    if (sides[0] * sides[1] > UINT32_MAX) check.refuse(array.name + " has samples that are too large");
    sides[1] *= sides[0];
    sides.erase(sides.begin());
  }
  const auto side = [&](std::size_t i) { return static_cast<std::uint32_t>(sides[i]); };
  if (layout == Layout::nhwc) return {side(0), side(1), side(2), layout};
  return {side(1), side(2), side(0), layout};
}

bool is_column(const Hdf5Source& source, const char* name, H5T_class_t kind, std::uint64_t length) {
  const Hdf5Check& check = source.check();
  if (!has_object(check, source.file(), name)) return false;
  H5L_info_t link;
  check(H5Lget_info(source.file(), name, &link, H5P_DEFAULT), "look for an object");
  if (link.type != H5L_TYPE_HARD) return false;
  const Hdf5Handle object(check(H5Oopen(source.file(), name, H5P_DEFAULT), "open an object"), H5Oclose);
  if (H5Iget_type(object.get()) != H5I_DATASET) return false;
  const Hdf5Handle type(check(H5Dget_type(object.get()), "ask for a type"), H5Tclose);
  const std::vector<hsize_t> dimensions = dataset_dimensions(check, object.get());
  return H5Tget_class(type.get()) == kind && H5Tis_variable_str(type.get()) <= 0 && dimensions.size() == 1 &&
         (length == 0 || dimensions[0] == length);
}

/// Takes what our own parts call rows, files and classes where it is as there; in external files the names
/// may mean anything.
void read_columns_beside(const Hdf5Source& source, std::uint64_t sample_count, PartContents& contents) {
  PartSamples& samples = contents.samples;
  samples.rows.resize(sample_count);
  std::iota(samples.rows.begin(), samples.rows.end(), std::uint64_t{0});
  samples.files.ends.assign(sample_count, 0);
  if (sample_count == 0) return;
  if (is_column(source, kRowsName, H5T_INTEGER, sample_count))
    samples.rows =
        read_column<std::uint64_t>(source.check(), open_column(source.check(), source.file(), kRowsName));
  if (is_column(source, kFilesName, H5T_STRING, sample_count))
    samples.files = read_text_column(source.check(), source.file(), kFilesName);
  if (!is_column(source, kClassesName, H5T_STRING, 0)) return;
  const TextList classes = read_text_column(source.check(), source.file(), kClassesName);
  const auto count = static_cast<std::int64_t>(classes.size());
  const auto is_named = [&](std::int64_t id) { return id >= -1 && id < count; };
  if (!std::ranges::all_of(samples.labels.ids, is_named)) return;
  for (std::size_t i = 0; i < classes.size(); ++i) contents.spec.classes.emplace_back(classes[i]);
}

}  // namespace

bool holds_matrix(const Hdf5Check& check, hid_t file) {
  return !has_object(check, file, kImagesName) &&
         (has_object(check, file, "X") || has_object(check, file, "matrix"));
}

void refuse_damaged_index(const Hdf5Source& source, const InputFile& input, const char* format_attribute) {
  const Hdf5Check& check = source.check();
  if (attribute_count(check, source.file(), format_attribute) == 0 || read_hdf5_trailer(input)) return;
  const std::uint64_t end = source.end_address();
  if (end < source.byte_count())
    check.refuse("the index behind its HDF5 end is damaged: " + std::to_string(source.byte_count() - end) +
                 " bytes without a trailer");
}

PartContents read_external_file(Hdf5Source& source, const Hdf5Names& names) {
  const Hdf5Check& check = source.check();
  if (!has_object(check, source.file(), names.images)) {
    if (holds_matrix(check, source.file())) check.refuse("holds matrices, expected images");
    refuse_missing(check, source.file(), "has no dataset /" + names.images, names.images, kNameAdvice);
  }
  const Hdf5Handle images = open_dataset(check, source.file(), names.images);
  const Hdf5Array array = describe_array(check, images.get(), "/" + names.images);
  const std::uint64_t sample_count = array.dimensions[0];
  if (sample_count > kMaxExternalSamples)
    check.refuse(array.name + " has " + std::to_string(sample_count) + " samples, expected at most " +
                 std::to_string(kMaxExternalSamples));
  PartContents contents;
  contents.has_hashes = false;
  contents.spec.sample = shape_of(check, images.get(), array);
  try {
    check_part_spec(contents.spec, container("hdf5"));
  } catch (const Error& error) {
    check.refuse(array.name + ": " + error.what());
  }
  lay_out_chunks(source, images.get(), array, contents);
  contents.samples.labels = read_external_labels(source, names, sample_count, contents.spec);
  read_columns_beside(source, sample_count, contents);
  return contents;
}

namespace {

// An array in one piece is cut to chunks of about this size.
constexpr std::uint64_t kCutBytes = 1 << 20;
// Chunks of the file that are smaller are taken several at a time.
constexpr std::uint64_t kMinChunkBytes = 1 << 16;
// Finding one takes about a microsecond, remembering it 16 bytes.
constexpr std::uint64_t kMaxTiles = 1 << 24;

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
  for (StoredTile& tile : tiles) {
    tile = find_tile(source, dataset, array, first);
    found += tile.stored_bytes > 0 ? 1 : 0;
    advance(first, array);
  }
  if (found == tiles.size()) return;
  const std::uint64_t written = written_chunks(source.check(), dataset);
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

namespace {

/// Class ids; the library makes the largest id of those above it.
std::vector<std::int64_t> read_ids(const Hdf5Check& check, const Hdf5Column& column,
                                   const std::string& place) {
  std::vector<std::int64_t> ids = read_column<std::int64_t>(check, column);
  if (std::ranges::find(ids, INT64_MAX) == ids.end()) return ids;
  for (const std::uint64_t id : read_column<std::uint64_t>(check, column))
    if (id > INT64_MAX)
      check.refuse(place + " has the class id " + std::to_string(id) + ", expected at most 2^63 - 1");
  return ids;
}

std::vector<float> read_values(const Hdf5Check& check, const Hdf5Column& column, const std::string& place) {
  std::vector<float> values = read_column<float>(check, column);
  if (column.is_floating) return values;
  const auto whole = read_column<std::int64_t>(check, column);
  for (std::size_t i = 0; i < values.size(); ++i)
    if (static_cast<double>(values[i]) != static_cast<double>(whole[i]))
      check.refuse(place + " has the number " + std::to_string(whole[i]) +
                   ", which no 32-bit float is: several columns of labels are floats");
  return values;
}

/// The name that is wanted: where none is given, the labels next to the images.
std::string labels_name(const Hdf5Names& names) {
  return names.labels.value_or(names.images.substr(0, names.images.rfind('/') + 1) + kLabelsName);
}

}  // namespace

Labels read_external_labels(const Hdf5Source& source, const Hdf5Names& names, std::uint64_t sample_count,
                            PartSpec& spec) {
  const Hdf5Check& check = source.check();
  const std::string name = labels_name(names);
  Labels labels;
  if (name.empty()) {
    labels.ids.assign(sample_count, -1);
    return labels;
  }
  if (!has_object(check, source.file(), name))
    refuse_missing(check, source.file(), "has no dataset /" + name, name,
                   std::string(kNameAdvice) + "; `labels`=\"\" reads images without labels");
  const Hdf5Column column = open_column(check, source.file(), name);
  const std::string place = "/" + name;
  if (column.dimensions.empty() || column.dimensions.size() > 2)
    check.refuse(place + " has " + std::to_string(column.dimensions.size()) +
                 " dimensions, expected labels in one or two");
  if (column.dimensions[0] != sample_count)
    check.refuse(place + " has " + std::to_string(column.dimensions[0]) + " labels, expected " +
                 std::to_string(sample_count));
  const std::uint64_t width = column.dimensions.size() == 2 ? column.dimensions[1] : 1;
  if (width == 0 || width > UINT16_MAX)
    check.refuse(place + " has " + std::to_string(width) + " columns, expected 1 to " +
                 std::to_string(UINT16_MAX));
  spec.label_columns.assign(width, "");
  if (!column.is_floating && width == 1)
    labels.ids = read_ids(check, column, place);
  else
    labels.values = read_values(check, column, place);
  return labels;
}

}  // namespace chunkhit
