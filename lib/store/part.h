// A part: chunks of samples in one self-contained file, with labels, rows and names. Two containers hold it:
// HDF5 (schemas/images-hdf5.md) and shard (schemas/shard.md). Samples are images, or in a shard also the rows
// of matrices; matrices in HDF5 are in store/hdf5/matrix.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/file.h"
#include "chunk/chunk_plan.h"
#include "chunkhit/pack_info.h"
#include "codec/chunk_codec.h"
#include "store/payload.h"
#include "types/sample_column.h"
#include "types/text_list.h"

namespace chunkhit {

/// How an image of its own size is stored.
enum class PayloadKind : std::uint8_t { jpeg = 1, raw = 2, zstd = 3, photo = 4 };

/// Pixels of an image of its own size.
inline constexpr std::uint64_t kMaxOwnPixels = std::uint64_t{1} << 28;

/// Bytes of the samples that share a hash: one sample, or a block of about 4 KiB where samples are smaller
/// than 1 KiB. `sample_bytes` is at least 1.
[[nodiscard]] constexpr std::uint64_t hashed_block_bytes(std::uint64_t sample_bytes) {
  constexpr std::uint64_t kMinBytes = 1024, kSharedBytes = 4096;
  if (sample_bytes >= kMinBytes) return sample_bytes;
  return (kSharedBytes + sample_bytes - 1) / sample_bytes * sample_bytes;
}

/// What is known of a part before its first chunk; recorded in the file.
struct PartSpec {
  std::variant<FixedSamples, SizedSamples, RowBlocks> samples;
  std::string codec = "none";              ///< a name of chunk_codecs()
  std::uint64_t chunk_samples = 1;         ///< in every chunk but the last; 0 for images of their own sizes
  std::vector<std::string> label_columns;  ///< names of the label columns; one for class ids
  std::uint64_t pack_id = 0;               ///< the same in all parts of a pack, another in every other pack
  std::uint32_t part_index = 0;
  bool hashes_samples = false;  ///< StoredChunk has sample_hashes: images of one shape, without a codec
  CacheAdvice cache_advice;

  [[nodiscard]] const Payload& payload() const {
    return std::visit([](const Payload& payload) -> const Payload& { return payload; }, samples);
  }
  /// The fields of images; throws std::bad_variant_access where samples are rows.
  [[nodiscard]] const ImageSamples& images() const {
    const auto* const sized = std::get_if<SizedSamples>(&samples);
    return sized != nullptr ? *sized : static_cast<const ImageSamples&>(std::get<FixedSamples>(samples));
  }
  [[nodiscard]] ImageSamples& images() {
    auto* const sized = std::get_if<SizedSamples>(&samples);
    return sized != nullptr ? *sized : static_cast<ImageSamples&>(std::get<FixedSamples>(samples));
  }
  /// The fields of rows; throws the same where samples are images.
  [[nodiscard]] const RowBlocks& rows() const { return std::get<RowBlocks>(samples); }
  [[nodiscard]] RowBlocks& rows() { return std::get<RowBlocks>(samples); }
  [[nodiscard]] bool holds_rows() const { return std::holds_alternative<RowBlocks>(samples); }
  [[nodiscard]] bool holds_own_sizes() const { return std::holds_alternative<SizedSamples>(samples); }
  /// Bytes of the samples that share a hash in `sample_hashes`; 0 without these.
  [[nodiscard]] std::uint64_t block_bytes() const {
    return hashes_samples ? hashed_block_bytes(payload().sample_step()) : 0;
  }
};
static_assert(std::is_nothrow_move_constructible_v<PartSpec>);  // it may hold many names

/// Labels of samples: class ids, or `label_columns` numbers each. Only one of the two is filled.
struct Labels {
  std::vector<std::int64_t> ids;
  std::vector<float> values;
};

/// What is known of images of their own sizes, by sample. A payload is the image, and behind it its mask.
struct ImageSizes {
  std::vector<std::uint32_t> payload_bytes;
  std::vector<std::uint32_t> heights;       ///< of the payload, pixels
  std::vector<std::uint32_t> widths;        ///< of the payload, pixels
  std::vector<std::uint8_t> kinds;          ///< PayloadKind
  std::vector<std::uint8_t> orientations;   ///< how the payload is to be turned, as EXIF numbers it
  std::vector<std::uint64_t> payload_xxh3;  ///< hash of the payload
  std::vector<std::uint32_t> mask_bytes;  ///< of the payload's end: a zlib stream of the upright mask; empty
                                          ///< without masks
  bool framed = true;  ///< payloads lie in zstd frames of raw blocks, as in shards; false: they lie bare
  [[nodiscard]] std::uint32_t mask_bytes_of(std::uint64_t sample) const {
    return mask_bytes.empty() ? 0 : mask_bytes[sample];
  }
  /// Bytes of a sample as it is stored: its payload, or the frame around it.
  [[nodiscard]] std::uint64_t stored_bytes(std::uint64_t sample) const {
    return framed ? raw_frame_bytes(payload_bytes[sample]) : payload_bytes[sample];
  }
  bool operator==(const ImageSizes&) const = default;
};

/// Rows, files and labels of a part's samples, in the order of the samples.
struct PartSamples {
  Labels labels;
  std::vector<std::uint64_t> rows;    ///< images: zero-based rows of the list; matrices: numbers of the users
  TextList files;                     ///< images: names of the input files, UTF-8
  TextList row_ids;                   ///< matrices: ids of the users
  std::vector<SampleColumn> columns;  ///< kept beside the labels
  std::vector<double> mean;           ///< per channel, of the packed pixels, 0..1
  std::vector<double> std;
  ImageSizes sizes;  ///< empty where all images have one shape
};

/// One chunk as it is stored.
struct StoredChunk {
  std::uint64_t offset = 0;  ///< offset of the first stored byte in the file
  std::uint64_t stored_bytes = 0;
  std::uint64_t raw_bytes = 0;  ///< after decoding; in our HDF5 parts always whole chunks, padded with zeros
  std::uint64_t first_sample = 0;  ///< index of the first sample in the part
  std::uint64_t sample_count = 0;
  std::uint64_t xxh3 = 0;  ///< hash of the stored bytes, or of the `sample_hashes`
  bool filtered = true;    ///< false: stored raw, as without a codec or where it did not make it smaller
  std::vector<std::uint64_t> sample_hashes = {};  ///< hash of each block of samples, where the part has them
  bool operator==(const StoredChunk&) const = default;
};

/// A chunk to be written: encoded by the part's codec, or raw if that is not larger.
struct EncodedChunk {
  Bytes stored;
  std::uint64_t raw_bytes = 0;
  std::uint64_t sample_count = 0;
  std::uint64_t xxh3 = 0;  ///< as StoredChunk
  bool filtered = true;
  std::vector<std::uint64_t> sample_hashes = {};  ///< as StoredChunk
};

/// Hashes of a chunk as StoredChunk has them.
struct ChunkHashes {
  std::uint64_t chunk = 0;
  std::vector<std::uint64_t> samples;
};

/// Hashes the stored bytes of a chunk: of blocks of `block_bytes`, and these; 0: all at once.
[[nodiscard]] ChunkHashes hash_chunk(Bytes stored, std::uint64_t block_bytes);

/// What was written.
struct PartReport {
  std::uint64_t bytes = 0;
  std::uint64_t xxh3 = 0;  ///< as ChunkReader::hash_of_all
  std::uint64_t sample_count = 0;
  std::uint64_t chunk_count = 0;
  std::uint64_t stored_bytes = 0;  ///< sum over all chunks
};

/// A part that is whole and on disk, but exists only once its file is published.
struct CompletePart {
  PartReport report;
  PendingFile file;
};

/// Writes a part aside.
class ChunkWriter {
 public:
  virtual ~ChunkWriter() = default;
  /// Appends the next chunk; throws cannot_write. One thread at a time.
  virtual void append(const EncodedChunk& chunk) = 0;
  /// Writes what stands beside the pixels, checks that the file is whole, and flushes it; throws
  /// cannot_write. Frees the samples as soon as they are written. Nothing else may be called after it.
  [[nodiscard]] virtual CompletePart complete(PartSamples samples) = 0;
  /// Completes the part and publishes it; throws cannot_write.
  PartReport finish(PartSamples samples);
};

/// The end of an HDF5 part of ours (store/hdf5/index.h).
struct Hdf5Trailer {
  std::uint32_t version = 0;
  SampleKind kind = SampleKind::images;
  std::uint64_t hdf5_bytes = 0;  ///< size of the HDF5 file, which the index follows
  std::uint64_t index_bytes = 0;
  std::uint64_t index_xxh3 = 0;
  std::uint64_t hdf5_xxh3 = 0;  ///< `hash_beside_chunks` of the HDF5 file
  std::uint64_t xxh3 = 0;       ///< hash of the trailer before it, which covers every byte of the part
};

/// A chunk of an external HDF5 file that is one of several in a chunk.
struct StoredPiece {
  std::uint64_t offset = 0;
  std::uint32_t stored_bytes = 0;
  bool filtered = false;  ///< false: stored raw
};

/// The pieces of all chunks, as many in each but the last.
struct StoredPieces {
  std::uint64_t in_chunk = 1;
  std::uint64_t raw_bytes = 0;  ///< raw bytes of a piece
  std::vector<StoredPiece> all;
  [[nodiscard]] std::span<const StoredPiece> of_chunk(std::size_t index) const {
    const std::uint64_t first = index * in_chunk;
    return std::span(all).subspan(first, std::min(in_chunk, all.size() - first));
  }
};

/// All that a part's file says, save the chunks' bytes.
struct PartContents {
  PartSpec spec;
  std::vector<StoredChunk> chunks;
  PartSamples samples;
  bool has_hashes = true;              ///< false for files of other programs
  std::optional<StoredPieces> pieces;  ///< pieces that `filtered` chunks consist of
  bool splits_chunks = false;          ///< a chunk is of several frames (schemas/codecs.md)
  /// Reads samples of chunks that have no position, on any thread: where set, all chunks are read by it.
  std::function<void(std::uint64_t first_sample, MutableBytes samples)> read_rows;
  std::optional<Hdf5Trailer> trailer;  ///< trailer of our own HDF5 parts
};

/// Hashes the first `end` bytes of a file with each chunk's stored bytes replaced by their recorded hash;
/// throws bad_data when they cannot be read. `padded`: the spec of a shard whose padding behind chunks is
/// taken as it must be instead of being read.
[[nodiscard]] std::uint64_t hash_beside_chunks(const InputFile& file, std::span<const StoredChunk> chunks,
                                               std::uint64_t end, const PartSpec* padded = nullptr);

/// Reads a part; every number in it was checked when this exists. Any thread may fetch.
class ChunkReader {
 public:
  ChunkReader(InputFile file, PartContents contents)
      : file_(std::move(file)), contents_(std::move(contents)) {
    file_.forget_ahead();
  }
  [[nodiscard]] const std::string& path() const { return file_.path(); }
  [[nodiscard]] std::uint64_t byte_count() const { return file_.byte_count(); }
  [[nodiscard]] const PartSpec& spec() const { return contents_.spec; }
  [[nodiscard]] const std::vector<StoredChunk>& chunks() const { return contents_.chunks; }
  [[nodiscard]] const PartSamples& samples() const { return contents_.samples; }
  /// Reads a chunk's stored bytes (resized to fit) and checks their hash; throws bad_data naming file, chunk,
  /// samples.
  void fetch(std::size_t chunk_index, ByteBuffer& stored) const;
  /// Whether a chunk's stored bytes are those that `chunks` says, one after the other.
  [[nodiscard]] bool is_in_one_place(std::size_t chunk_index) const {
    return !contents_.read_rows && !(chunks()[chunk_index].filtered && pieces());
  }
  /// The same into as many bytes as the chunk has; its hash is compared where `checks`.
  void fetch(std::size_t chunk_index, MutableBytes stored, bool checks) const;
  /// Compares the hash of a chunk's stored bytes, and throws as `fetch`.
  void check(std::size_t chunk_index, Bytes stored) const;
  /// Whether samples of raw chunks can be compared one by one: they have hashes, or the part has none at all.
  [[nodiscard]] bool compares_samples() const {
    return spec().hashes_samples || spec().holds_own_sizes() || !has_hashes();
  }
  /// Reads samples of a raw chunk, from the one with index `first` in it on, whose bytes begin at `offset`
  /// of the chunk. Compares their hashes where `checks` (and `compares_samples`); throws as `fetch`. Images
  /// of their own sizes are read one at a time.
  void fetch_samples(std::size_t chunk_index, std::uint64_t first, std::uint64_t offset, MutableBytes out,
                     bool checks) const;
  /// Compares the hash of one image of its own size; throws as `fetch`.
  void check_payload(std::size_t chunk_index, std::uint64_t in_chunk, Bytes stored) const;
  /// Asks the system for a chunk whose samples will be read soon.
  void read_ahead(std::size_t chunk_index) const;
  /// Hashes the whole part as schemas/manifest.md says, with the recorded hashes of its chunks (and of its
  /// HDF5 file) instead of their bytes; throws bad_data when the others cannot be read. A shard's padding is
  /// a read for each chunk, which loaders leave out.
  [[nodiscard]] std::uint64_t hash_of_all(bool reads_padding = true) const;
  /// Compares what `hash_of_all` leaves out beside the chunks: the bytes of our HDF5 parts that only the HDF5
  /// library reads. Throws bad_data.
  void check_hdf5_bytes() const;
  /// Whether `fetch` can check hashes: false for an HDF5 file without our private index.
  [[nodiscard]] bool has_hashes() const { return contents_.has_hashes; }
  /// Whether a chunk's samples are stored raw, one after the other from its offset on.
  [[nodiscard]] bool stored_raw(std::size_t chunk_index) const {
    const StoredChunk& chunk = chunks()[chunk_index];
    return !chunk.filtered && chunk.stored_bytes == chunk.raw_bytes && !contents_.read_rows;
  }
  [[nodiscard]] const InputFile& file() const { return file_; }
  /// Whether restoring some samples of a chunk takes less than restoring all.
  [[nodiscard]] bool splits_chunks() const { return contents_.splits_chunks; }
  /// Returns nothing if every chunk is stored as a whole.
  [[nodiscard]] const std::optional<StoredPieces>& pieces() const { return contents_.pieces; }
  /// Says how many samples the parts before this one have, so that messages name those of the pack, too.
  void set_samples_before(std::uint64_t count) { samples_before_ = count; }
  /// Names a chunk for messages: "part-00001.h5: chunk 17 (samples 1700-1799, 5700-5799 of the pack)".
  [[nodiscard]] std::string location(std::size_t chunk_index) const;

 private:
  void compare_hash(std::size_t chunk_index, std::uint64_t found) const;
  void check_blocks(std::size_t chunk_index, std::uint64_t at, Bytes bytes) const;
  void fetch_blocks(std::size_t chunk_index, std::uint64_t at, MutableBytes out) const;
  /// Names samples of a chunk, behind its location.
  [[nodiscard]] std::string location(std::size_t chunk_index, std::uint64_t in_chunk,
                                     std::uint64_t count) const;
  /// Reads bytes of a chunk from the file; a bad sector is bad_data.
  void read_stored(std::size_t chunk_index, std::uint64_t offset, MutableBytes out) const;
  /// Reads a chunk that has no position, or several.
  void read_pieces(std::size_t chunk_index, MutableBytes out) const;
  InputFile file_;
  PartContents contents_;
  std::uint64_t samples_before_ = 0;
};

/// Restores a chunk's samples from its stored bytes; `raw` has chunk.raw_bytes. Samples that are not wanted
/// may be left out. Throws bad_data naming the location.
void decode_chunk(const ChunkReader& part, std::size_t chunk_index, Bytes stored, MutableBytes raw,
                  const ChunkUse& use = {});

/// A kind of file that holds parts; one static row per container.
struct Container {
  std::string_view name;                            ///< "hdf5", "shard"
  std::string_view extension;                       ///< ".h5", ".zst"
  std::span<const std::string_view> codecs;         ///< of images, the default first
  std::span<const std::string_view> matrix_codecs;  ///< of matrices, the default first
  std::uint64_t max_chunk_bytes;                    ///< raw bytes of a chunk
  bool pads_last_chunk;     ///< the last chunk is given whole too, with zeros behind its samples
  bool is_zstd_stream;      ///< a raw chunk is in a frame of raw blocks, a filtered one in several frames
  bool holds_row_blocks;    ///< chunks of matrices are row blocks; else ranges of entries
  bool is_read_by_library;  ///< other programs read it by the HDF5 library, its chunk cache and its plug-ins
  bool reads_samples;       ///< raw samples are read one by one
  bool (*recognises)(Bytes first_bytes);  ///< by the file's first 32 bytes
  std::unique_ptr<ChunkWriter> (*create)(const std::string& path, const PartSpec& spec);
  std::unique_ptr<ChunkReader> (*open)(const std::string& path);  ///< a part of ours
  /// PartSpec::hashes_samples of new parts of images of one shape.
  [[nodiscard]] bool hashes_samples(std::string_view codec) const { return reads_samples && codec == "none"; }
  /// A single part, or an external file.
  std::unique_ptr<ChunkReader> (*open_lone)(const std::string& path, const Hdf5Names& names);
  bool (*holds_matrices)(const std::string& path);  ///< of a single part, or an external file
  std::vector<std::unique_ptr<ChunkReader>> (*open_matrices)(const std::vector<std::string>& paths,
                                                             std::uint64_t memory_bytes);
};

/// All containers.
[[nodiscard]] std::span<const Container> containers();

/// Finds a container by name; throws usage with the list of valid names.
[[nodiscard]] const Container& container(std::string_view name);

/// Detects a part's container by its first bytes; throws bad_data when it is none.
[[nodiscard]] const Container& container_of(const std::string& path);

/// Opens a part of images of any container, or another HDF5 file with an array of bytes under `names.images`;
/// throws bad_data when it is none or damaged. An external file is opened by another program before
/// (store/hdf5/external_check.h).
[[nodiscard]] std::unique_ptr<ChunkReader> open_part(const std::string& path, const Hdf5Names& names = {});

/// Opens a part of matrices, or an AnnData file: its `spec().rows()` is there, its chunks decode to row
/// blocks. Throws bad_data when it is none or damaged, usage when the ids and the index of a shard need more
/// than `memory_bytes`: of all parts together; 0: half of what the process may still take, and try_again.
/// External files are opened as by `open_part`.
[[nodiscard]] std::unique_ptr<ChunkReader> open_matrix_part(const std::string& path,
                                                            std::uint64_t memory_bytes = 0);

/// Opens the parts of a pack of matrices, which are of one container; throws as `open_matrix_part`.
[[nodiscard]] std::vector<std::unique_ptr<ChunkReader>> open_matrix_parts(
    const std::vector<std::string>& paths, std::uint64_t memory_bytes = 0);

}  // namespace chunkhit
