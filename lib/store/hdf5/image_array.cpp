#include "store/hdf5/image_array.h"

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <numeric>
#include <span>
#include <utility>

#include "base/bytes.h"
#include "codec/chunk_codec.h"
#include "store/hdf5/dataset.h"
#include "store/hdf5/image_part.h"

namespace chunkhit {
namespace {

std::string type_name(hid_t type) {
  const std::string bits = std::to_string(H5Tget_size(type) * 8) + " bits";
  switch (H5Tget_class(type)) {
    case H5T_INTEGER:
      return (H5Tget_sign(type) == H5T_SGN_NONE ? "unsigned numbers of " : "signed numbers of ") + bits;
    case H5T_FLOAT:
      return "floating numbers of " + bits;
    case H5T_STRING:
      return "text";
    case H5T_COMPOUND:
      return "compounds";
    case H5T_ENUM:
      return "an enumeration or truth values";
    default:
      return "values of class " + std::to_string(H5Tget_class(type));
  }
}

void check_type(const Hdf5Check& check, hid_t dataset, const std::string& name) {
  const Hdf5Handle type(check(H5Dget_type(dataset), "ask for a type"), H5Tclose);
  if (H5Tget_class(type.get()) != H5T_INTEGER || H5Tget_size(type.get()) != 1 ||
      H5Tget_sign(type.get()) != H5T_SGN_NONE)
    check.refuse(name + " holds " + type_name(type.get()) + ", expected unsigned numbers of 8 bits");
}

bool is_codec(H5Z_filter_t filter) { return filter == H5Z_FILTER_DEFLATE || filter == kZstdFilter; }

/// Accepts the filters that our own readers can undo.
H5Z_filter_t known_filter(const Hdf5Check& check, hid_t list, unsigned index, const std::string& name) {
  std::array<unsigned, 1> element_bytes{1};
  std::size_t values = element_bytes.size();
  const H5Z_filter_t id =
      H5Pget_filter2(list, index, nullptr, &values, element_bytes.data(), 0, nullptr, nullptr);
  if (id == H5Z_FILTER_SHUFFLE && values > 0 && element_bytes[0] != 1)
    check.refuse(name + " has its bytes shuffled as elements of " + std::to_string(element_bytes[0]) +
                 " bytes");
  if (!is_codec(id) && id != H5Z_FILTER_SHUFFLE && id != H5Z_FILTER_FLETCHER32)
    check.refuse(name + " has filter " + filter_text(id) +
                 ", expected none, deflate, shuffle, fletcher32 or zstd");
  return id;
}

void read_filters(const Hdf5Check& check, hid_t list, Hdf5Array& array) {
  const int count = check(H5Pget_nfilters(list), "ask for filters");
  for (unsigned i = 0; i < static_cast<unsigned>(count); ++i)
    array.filters.push_back(known_filter(check, list, i, array.name));
  if (std::ranges::count_if(array.filters, is_codec) > 1)
    check.refuse(array.name + " is compressed more than once");
}

}  // namespace

Hdf5Array describe_array(const Hdf5Check& check, hid_t dataset, const std::string& name) {
  Hdf5Array array;
  array.name = name;
  check_type(check, dataset, name);
  const std::vector<hsize_t> dimensions = dataset_dimensions(check, dataset);
  if (dimensions.empty()) check.refuse(name + " is a single value or empty, expected an array");
  array.dimensions.assign(dimensions.begin(), dimensions.end());
  const Hdf5Handle list(check(H5Dget_create_plist(dataset), "ask for an array's storage"), H5Pclose);
  const H5D_layout_t layout = H5Pget_layout(list.get());
  if (layout == H5D_VIRTUAL || H5Pget_external_count(list.get()) > 0)
    check.refuse(name + " lies in another file");
  if (layout == H5D_COMPACT) check.refuse(name + " lies in its object's header (compact storage)");
  read_filters(check, list.get(), array);
  if (layout == H5D_CHUNKED) {
    const std::vector<hsize_t> chunk = chunk_sides(check, dataset);
    array.chunk.assign(chunk.begin(), chunk.end());
    unsigned options = 0;
    check(H5Pget_chunk_opts(list.get(), &options), "ask for the chunks' options");
    array.filters_partial_chunks = (options & H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS) == 0;
    array.is_written = H5Dget_storage_size(dataset) > 0;
    return array;
  }
  const haddr_t offset = H5Dget_offset(dataset);
  array.is_written = offset != HADDR_UNDEF;
  array.offset = array.is_written ? offset : 0;
  return array;
}

namespace {

// A contiguous array is divided into chunks of about this size.
constexpr std::uint64_t kCutBytes = 1 << 20;
// Smaller chunks of the file are joined to chunks of at least this size.
constexpr std::uint64_t kMinChunkBytes = 1 << 16;
// Looking up one takes about a microsecond and 16 bytes.
constexpr std::uint64_t kMaxTiles = 1 << 24;
constexpr std::size_t kFletcherBytes = 4;

std::uint64_t ceiling(std::uint64_t value, std::uint64_t step) { return value / step + (value % step != 0); }

/// Divides the samples into chunks of chunk_samples, raw for now.
void cut_samples(std::uint64_t sample_count, PartContents& contents) {
  const std::uint64_t chunk_samples = contents.spec.chunk_samples;
  contents.chunks.resize(ceiling(sample_count, chunk_samples));
  for (std::size_t i = 0; i < contents.chunks.size(); ++i) {
    StoredChunk& chunk = contents.chunks[i];
    chunk.first_sample = i * chunk_samples;
    chunk.sample_count = std::min(chunk_samples, sample_count - chunk.first_sample);
    chunk.raw_bytes = chunk.sample_count * contents.spec.images().sample.byte_count();
    chunk.stored_bytes = chunk.raw_bytes;
    chunk.filtered = false;
  }
}

/// Divides a contiguous array. The file must have all of its bytes, checked before memory is allocated.
void cut_one_piece(const Hdf5Source& source, const Hdf5Array& array, PartContents& contents) {
  const std::uint64_t sample_bytes = contents.spec.images().sample.byte_count();
  const std::uint64_t samples = array.dimensions[0];
  if (array.offset > source.byte_count() || samples > (source.byte_count() - array.offset) / sample_bytes)
    source.check().refuse(array.name + " lies outside of the file");
  contents.spec.chunk_samples = std::max<std::uint64_t>(1, kCutBytes / sample_bytes);
  cut_samples(samples, contents);
  for (StoredChunk& chunk : contents.chunks) chunk.offset = array.offset + chunk.first_sample * sample_bytes;
}

/// Multiplies the sides; throws bad_data above the size limit of a chunk.
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

/// Counts the chunks of the file by the dimensions, which may be damaged, without overflow.
std::uint64_t checked_tile_count(const Hdf5Check& check, const Hdf5Array& array) {
  std::uint64_t count = 1;
  for (std::size_t side = 0; side < array.chunk.size(); ++side) {
    const std::uint64_t along = ceiling(array.dimensions[side], array.chunk[side]);
    if (along != 0 && count > kMaxTiles / along)
      check.refuse(array.name + " has more than " + std::to_string(kMaxTiles) + " chunks");
    count *= along;
  }
  return count;
}

/// Moves to the first element of the next chunk in row-major order.
void advance(std::vector<hsize_t>& first, const Hdf5Array& array) {
  for (std::size_t side = first.size(); side-- > 0;) {
    first[side] += array.chunk[side];
    if (first[side] < array.dimensions[side] || side == 0) return;
    first[side] = 0;
  }
}

/// Returns whether our decoders can read the chunks: whole samples, at most one codec, no checksums.
bool is_plain(const Hdf5Array& array) {
  const bool is_whole = std::equal(array.chunk.begin() + 1, array.chunk.end(), array.dimensions.begin() + 1,
                                   array.dimensions.end());
  return is_whole && array.filters_partial_chunks &&
         std::ranges::count(array.filters, H5Z_FILTER_FLETCHER32) == 0;
}

/// Finds all chunks of the file; throws bad_data if written ones are missing at their positions.
std::vector<StoredPiece> find_pieces(Hdf5Source& source, hid_t dataset, const Hdf5Array& array) {
  const Hdf5Check& check = source.check();
  std::vector<StoredPiece> pieces(checked_tile_count(check, array));
  const auto codec = std::ranges::find_if(array.filters, is_codec);
  const auto bit = static_cast<unsigned>(codec - array.filters.begin());
  std::vector<hsize_t> first(array.chunk.size());
  std::uint64_t found = 0;
  for (StoredPiece& piece : pieces) {
    if (const auto location = source.find_chunk(dataset, first)) {
      if (location->stored_bytes > UINT32_MAX) check.refuse(array.name + " has a chunk of more than 4 GiB");
      const bool is_filtered = codec != array.filters.end() && (location->filter_mask >> bit & 1) == 0;
      piece = {location->offset, static_cast<std::uint32_t>(location->stored_bytes), is_filtered};
      ++found;
    }
    advance(first, array);
  }
  const std::uint64_t written = found == pieces.size() ? found : written_chunks(check, dataset);
  if (found != written)
    check.refuse(array.name + " has " + std::to_string(found) + " chunks at their positions, expected " +
                 std::to_string(written));
  return pieces;
}

/// Makes chunks of pieces, one or several each.
void join_pieces(std::vector<StoredPiece> all, std::uint64_t raw_bytes, std::uint64_t in_chunk,
                 PartContents& contents) {
  StoredPieces pieces{in_chunk, raw_bytes, std::move(all)};
  for (std::size_t i = 0; i < contents.chunks.size(); ++i) {
    StoredChunk& chunk = contents.chunks[i];
    const std::span<const StoredPiece> own = pieces.of_chunk(i);
    chunk.offset = own[0].offset;
    chunk.raw_bytes = own.size() * raw_bytes;
    chunk.stored_bytes = 0;
    for (const StoredPiece& piece : own) {
      // Raw pieces that follow one another are the samples themselves and need no copy.
      chunk.filtered = chunk.filtered || piece.filtered || piece.stored_bytes != raw_bytes ||
                       piece.offset != chunk.offset + chunk.stored_bytes;
      chunk.stored_bytes += piece.stored_bytes;
    }
  }
  if (in_chunk > 1 && std::ranges::any_of(contents.chunks, &StoredChunk::filtered))
    contents.pieces = std::move(pieces);
}

/// Reads samples that have no file offset of their own through libhdf5, one thread at a time.
class ArrayRows {
 public:
  ArrayRows(const InputFile& input, Hdf5Array array)
      : source_(input),
        array_(std::move(array)),
        dataset_(open_dataset(source_.check(), source_.file(), array_.name)),
        chunk_bytes_(array_.filters.empty() ? 0 : checked_bytes(source_.check(), array_, array_.chunk)) {}

  /// Fills with the samples from `first` on, with which rows of chunks begin and end.
  void read(std::uint64_t first, MutableBytes samples) {
    const Hdf5Session session;
    forget_machine_error();  // of another file that this thread read
    const Hdf5Check& check = source_.check();
    std::vector<hsize_t> from(array_.dimensions.size());
    std::vector<hsize_t> sides(array_.dimensions.begin(), array_.dimensions.end());
    from[0] = first;
    sides[0] = 1;
    const std::uint64_t sample_bytes =
        std::accumulate(sides.begin(), sides.end(), std::uint64_t{1}, std::multiplies<>());
    sides[0] = samples.size() / sample_bytes;
    if (!array_.filters.empty()) check_row(from, first + sides[0]);
    const Hdf5Handle stored = select_box(check, dataset_.get(), from, sides);
    const Hdf5Handle memory = make_space(check, sides);
    check(H5Dread(dataset_.get(), H5T_NATIVE_UINT8, memory.get(), stored.get(), H5P_DEFAULT, samples.data()),
          ("read " + array_.name).c_str());
  }

 private:
  /// Decodes every chunk of the samples before libhdf5 does: version 1.10 reads past the end of a chunk that
  /// decodes to fewer bytes than the array has, and crashes.
  void check_row(std::vector<hsize_t> at, std::uint64_t end) {
    for (; at[0] < end; advance(at, array_)) {
      hsize_t bytes = 0;
      std::uint32_t mask = 0;
      if (H5Dget_chunk_storage_size(dataset_.get(), at.data(), &bytes) < 0 || bytes == 0) continue;
      if (bytes > source_.byte_count()) source_.check().refuse("a chunk that is larger than its file");
      stored_.resize(bytes);
      source_.check()(H5Dread_chunk(dataset_.get(), H5P_DEFAULT, at.data(), &mask, stored_.data()),
                      "read a chunk");
      check_chunk(mask, is_filtered(at) ? array_.filters.size() : 0);
    }
  }

  /// Chunks at the array's edges may be stored unfiltered.
  [[nodiscard]] bool is_filtered(const std::vector<hsize_t>& at) const {
    if (array_.filters_partial_chunks) return true;
    for (std::size_t side = 0; side < at.size(); ++side)
      if (array_.dimensions[side] - at[side] < array_.chunk[side]) return false;
    return true;
  }

  /// Undoes the filters that change the size of `stored_`; libhdf5 compares the checksums itself.
  void check_chunk(std::uint32_t mask, std::size_t filter_count) {
    Bytes bytes = stored_;
    std::uint64_t sums = 0;  // bytes of checksums before the codec
    for (std::size_t i = 0; i < filter_count; ++i)
      sums += array_.filters[i] == H5Z_FILTER_FLETCHER32 && (mask >> i & 1) == 0 ? kFletcherBytes : 0;
    for (std::size_t i = filter_count; i-- > 0;) {
      if ((mask >> i & 1) != 0) continue;
      if (array_.filters[i] == H5Z_FILTER_FLETCHER32) {
        bytes = bytes.first(bytes.size() - std::min(bytes.size(), kFletcherBytes));
        sums -= kFletcherBytes;
      } else if (is_codec(array_.filters[i])) {
        raw_.resize(chunk_bytes_ + sums);
        chunk_codec(filter_name(array_.filters[i])).decode(bytes, {}, {}, raw_);
        bytes = raw_;
      }
    }
    if (bytes.size() != chunk_bytes_)
      source_.check().refuse("a chunk of " + std::to_string(bytes.size()) + " bytes, expected " +
                             std::to_string(chunk_bytes_));
  }

  Hdf5Source source_;
  Hdf5Array array_;
  Hdf5Handle dataset_;
  std::uint64_t chunk_bytes_;
  ByteBuffer stored_;
  ByteBuffer raw_;
};

}  // namespace

void lay_out_chunks(Hdf5Source& source, const InputFile& input, hid_t dataset, const Hdf5Array& array,
                    PartContents& contents) {
  if (array.chunk.empty() && array.is_written) return cut_one_piece(source, array, contents);
  const Hdf5Check& check = source.check();
  PartSpec& spec = contents.spec;
  const std::uint64_t samples = array.dimensions[0];
  const std::uint64_t sample_bytes = spec.images().sample.byte_count();
  std::uint64_t row_samples = std::max<std::uint64_t>(1, kCutBytes / sample_bytes);
  std::vector<StoredPiece> pieces;
  if (!array.chunk.empty()) {
    checked_bytes(check, array, array.chunk);
    row_samples = std::min(array.chunk[0], std::max<std::uint64_t>(samples, 1));
    pieces = find_pieces(source, dataset, array);
  }
  const std::uint64_t rows =
      std::max<std::uint64_t>(1, kMinChunkBytes / checked_bytes(check, array, {row_samples, sample_bytes}));
  spec.chunk_samples = row_samples * rows;
  spec.codec = codec_name(check, dataset);
  cut_samples(samples, contents);
  const bool is_whole =
      std::ranges::all_of(pieces, [](const StoredPiece& piece) { return piece.stored_bytes > 0; });
  if (!array.chunk.empty() && is_plain(array) && is_whole)
    return join_pieces(std::move(pieces), array.chunk[0] * sample_bytes, rows, contents);
  if (std::ranges::find(array.filters, kZstdFilter) != array.filters.end() &&
      H5Zfilter_avail(kZstdFilter) <= 0)
    check.refuse(array.name +
                 " has samples that are split over chunks of zstd, for which HDF5 needs a plug-in");
  contents.read_rows = [reader = std::make_shared<ArrayRows>(input, array)](
                           std::uint64_t first, MutableBytes out) { reader->read(first, out); };
}

}  // namespace chunkhit
