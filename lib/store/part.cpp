#include "store/part.h"

#include <array>

#include "base/hash.h"
#include "base/per_thread.h"
#include "base/resources.h"
#include "base/throw_error.h"
#include "base/words.h"
#include "chunkhit/error.h"
#include "store/hdf5/image_part.h"
#include "store/hdf5/matrix.h"
#include "store/shard.h"

namespace chunkhit {
namespace {

constexpr std::size_t kRecognisedBytes = 32;
constexpr std::uint64_t kHashBlockBytes = 256 << 10;
PerThread<Xxh3Stream> hashes;
constexpr std::array<std::string_view, 3> kHdf5Codecs{"none", "deflate", "zstd"};
constexpr std::array<std::string_view, 3> kShardCodecs{"photo", "zstd", "none"};
constexpr std::array<std::string_view, 2> kHdf5MatrixCodecs{"deflate", "none"};
constexpr std::array<std::string_view, 2> kShardMatrixCodecs{"zstd", "none"};

/// Opens a shard of images. The index of matrices may expand a thousandfold: it is not looked at.
std::unique_ptr<ChunkReader> open_image_shard(const std::string& path) {
  return open_shard(path, UINT64_MAX, false);
}

/// Shards have no other names for their samples.
std::unique_ptr<ChunkReader> open_single_shard(const std::string& path, const Hdf5Names&) {
  return open_image_shard(path);
}

/// Ids and indices may take so much whatever memory is given for rows.
constexpr std::uint64_t kMinIndexMemory = 64 << 20;

/// What the ids and the index of an open part take.
std::uint64_t kept_bytes(const ChunkReader& part) {
  const PartSamples& samples = part.samples();
  std::uint64_t bytes = part.chunks().size() * sizeof(StoredChunk) + samples.row_ids.text.size() +
                        samples.rows.size() * 3 * sizeof(std::uint64_t);
  for (const std::string& name : part.spec().rows().item_ids) bytes += sizeof(std::string) + name.size();
  return bytes;
}

/// Opens a shard whose ids and index may take `left`. Where nobody gave that number, nobody can mend it
/// either.
std::unique_ptr<ChunkReader> open_within(const std::string& path, std::uint64_t left, bool is_given) {
  try {
    return open_shard(path, left);
  } catch (const Error& error) {
    if (is_given || error.code() != ErrorCode::usage) throw;
    throw Error(ErrorCode::try_again, std::string(error.what()) + ": half of what can be had");
  }
}

void decode_pieces(const StoredPieces& pieces, std::size_t chunk_index, const std::string& codec,
                   Bytes stored, MutableBytes raw) {
  for (const StoredPiece& piece : pieces.of_chunk(chunk_index)) {
    chunk_codec(piece.filtered ? codec : "none")
        .decode(stored.first(piece.stored_bytes), {}, {}, raw.first(pieces.raw_bytes));
    stored = stored.subspan(piece.stored_bytes);
    raw = raw.subspan(pieces.raw_bytes);
  }
}

std::vector<std::unique_ptr<ChunkReader>> open_matrix_shards(const std::vector<std::string>& paths,
                                                             std::uint64_t memory_bytes) {
  std::uint64_t left = std::max(memory_bytes != 0 ? memory_bytes : available_memory() / 2, kMinIndexMemory);
  std::vector<std::unique_ptr<ChunkReader>> parts;
  for (const std::string& path : paths) {
    parts.push_back(open_within(path, left, memory_bytes != 0));
    if (!parts.back()->spec().holds_rows()) throw_bad_data(path + ": holds images, expected matrices");
    left -= std::min(left, kept_bytes(*parts.back()));
  }
  return parts;
}

constexpr std::array<Container, 2> kContainers{{
    {.name = "hdf5",
     .extension = ".h5",
     .codecs = kHdf5Codecs,
     .matrix_codecs = kHdf5MatrixCodecs,
     .max_chunk_bytes = kMaxHdf5ChunkBytes,
     .pads_last_chunk = true,
     .is_zstd_stream = false,
     .holds_row_blocks = false,
     .is_read_by_library = true,
     .reads_samples = true,
     .recognises = is_hdf5_part,
     .create = create_hdf5_part,
     .open = open_hdf5_part,
     .open_lone = open_single_hdf5,
     .holds_matrices = is_matrix_hdf5,
     .open_matrices = [](const auto& paths, std::uint64_t) { return open_matrices_hdf5(paths); }},
    {.name = "shard",
     .extension = ".zst",
     .codecs = kShardCodecs,
     .matrix_codecs = kShardMatrixCodecs,
     .max_chunk_bytes = kMaxShardChunkBytes,
     .pads_last_chunk = false,
     .is_zstd_stream = true,
     .holds_row_blocks = true,
     .is_read_by_library = false,
     .reads_samples = false,
     .recognises = is_shard,
     .create = create_shard,
     .open = open_image_shard,
     .open_lone = open_single_shard,
     .holds_matrices = is_matrix_shard,
     .open_matrices = open_matrix_shards},
}};

}  // namespace

std::uint64_t hash_beside_chunks(const InputFile& file, std::span<const StoredChunk> chunks,
                                 std::uint64_t end, const PartSpec* padded) {
  Xxh3Stream hash;
  ByteBuffer block;
  std::uint64_t at = 0;
  const auto add_to = [&](std::uint64_t to) {
    while (at < to) {
      block.resize(std::min(kHashBlockBytes, to - at));
      file.read_at(at, block);
      hash.update(block);
      at += block.size();
    }
  };
  std::array<std::uint8_t, sizeof(std::uint64_t)> of_chunk{};
  for (const StoredChunk& chunk : chunks) {
    add_to(chunk.offset);
    store_little(of_chunk.data(), chunk.xxh3);
    hash.update(of_chunk);
    at = chunk.offset + chunk.stored_bytes;
    if (const std::uint64_t padding = padded != nullptr ? shard_padding(*padded, at) : 0; padding != 0) {
      hash.update(encode_shard_padding(padding));
      at += padding;
    }
  }
  if (padded != nullptr) file.read_ahead(at, end - at);  // by one request
  add_to(end);
  return hash.value();
}

ChunkHashes hash_chunk(Bytes stored, std::uint64_t block_bytes) {
  if (block_bytes == 0) return {xxh3(stored), {}};
  ChunkHashes made;
  made.samples.reserve((stored.size() + block_bytes - 1) / block_bytes);
  for (; !stored.empty(); stored = stored.subspan(std::min<std::uint64_t>(block_bytes, stored.size())))
    made.samples.push_back(xxh3(stored.first(std::min<std::uint64_t>(block_bytes, stored.size()))));
  made.chunk = xxh3(bytes_of(made.samples));
  return made;
}

PartReport ChunkWriter::finish(PartSamples samples) {
  CompletePart part = complete(std::move(samples));
  part.file.publish();
  return part.report;
}

void ChunkReader::fetch(std::size_t chunk_index, ByteBuffer& stored) const {
  stored.resize(chunks()[chunk_index].stored_bytes);
  fetch(chunk_index, stored, true);
}

void ChunkReader::fetch(std::size_t chunk_index, MutableBytes stored, bool checks) const {
  const StoredChunk& chunk = chunks()[chunk_index];
  if (!is_in_one_place(chunk_index)) return read_pieces(chunk_index, stored);
  if (chunk.stored_bytes > kHashBlockBytes) read_ahead(chunk_index);
  if (!checks || !has_hashes()) return read_stored(chunk_index, chunk.offset, stored);
  if (spec().hashes_samples) return fetch_blocks(chunk_index, 0, stored);
  // Hashed block by block, while they are in the processor's cache.
  Xxh3Stream& hash = hashes.get();
  hash.reset();
  for (std::uint64_t at = 0; at < stored.size(); at += kHashBlockBytes) {
    const MutableBytes block =
        stored.subspan(at, std::min<std::uint64_t>(kHashBlockBytes, stored.size() - at));
    read_stored(chunk_index, chunk.offset + at, block);
    hash.update(block);
  }
  compare_hash(chunk_index, hash.value());
}

void ChunkReader::read_pieces(std::size_t chunk_index, MutableBytes out) const {
  if (!contents_.read_rows) {
    const std::span<const StoredPiece> pieces = contents_.pieces->of_chunk(chunk_index);
    for (std::size_t i = 0; i < pieces.size();) {  // those that follow each other at once
      const std::uint64_t offset = pieces[i].offset;
      std::uint64_t bytes = 0;
      while (i < pieces.size() && pieces[i].offset == offset + bytes) bytes += pieces[i++].stored_bytes;
      file_.read_at(offset, out.first(bytes));
      out = out.subspan(bytes);
    }
    return;
  }
  try {
    contents_.read_rows(chunks()[chunk_index].first_sample, out);
  } catch (const Error& error) {
    throw Error(error.code(), location(chunk_index) + ": " + error.what());
  }
}

void ChunkReader::check(std::size_t chunk_index, Bytes stored) const {
  if (spec().hashes_samples) return check_blocks(chunk_index, 0, stored);
  if (has_hashes()) compare_hash(chunk_index, xxh3(stored));
}

void ChunkReader::read_ahead(std::size_t chunk_index) const {
  file_.read_ahead(chunks()[chunk_index].offset, chunks()[chunk_index].stored_bytes);
}

void ChunkReader::fetch_samples(std::size_t chunk_index, std::uint64_t first, std::uint64_t offset,
                                MutableBytes out, bool checks) const {
  if (checks && spec().hashes_samples) return fetch_blocks(chunk_index, offset, out);
  read_stored(chunk_index, chunks()[chunk_index].offset + offset, out);
  if (checks && spec().holds_own_sizes()) check_payload(chunk_index, first, out);
}

/// Reads bytes of whole samples, from `at` of the chunk on, and compares the blocks that hold them: straight
/// to `out` where it has whole blocks, which are hashed while they are in the processor's cache.
void ChunkReader::fetch_blocks(std::size_t chunk_index, std::uint64_t at, MutableBytes out) const {
  static PerThread<ByteBuffer> buffer;
  const StoredChunk& chunk = chunks()[chunk_index];
  const std::uint64_t block_bytes = spec().block_bytes();
  const std::uint64_t some_bytes = std::max<std::uint64_t>(1, kHashBlockBytes / block_bytes) * block_bytes;
  const auto read = [&](std::uint64_t begin, MutableBytes to) {
    read_stored(chunk_index, chunk.offset + begin, to);
    check_blocks(chunk_index, begin, to);
  };
  while (!out.empty()) {
    const std::uint64_t begin = at / block_bytes * block_bytes;
    const bool ends_chunk = at + out.size() == chunk.stored_bytes;
    const std::uint64_t whole = ends_chunk ? out.size() : out.size() / block_bytes * block_bytes;
    std::uint64_t bytes = begin == at ? std::min(whole, some_bytes) : 0;
    if (bytes > 0) {
      read(at, out.first(bytes));
    } else {
      ByteBuffer& block = buffer.get();
      block.resize(std::min(block_bytes, chunk.stored_bytes - begin));
      read(begin, block);
      bytes = std::min<std::uint64_t>(out.size(), begin + block.size() - at);
      std::copy_n(block.begin() + static_cast<std::ptrdiff_t>(at - begin), bytes, out.begin());
    }
    at += bytes;
    out = out.subspan(bytes);
  }
}

/// Compares the blocks of samples that begin at `at` of the chunk.
void ChunkReader::check_blocks(std::size_t chunk_index, std::uint64_t at, Bytes bytes) const {
  const StoredChunk& chunk = chunks()[chunk_index];
  const std::uint64_t block_bytes = spec().block_bytes();
  for (std::uint64_t index = at / block_bytes; !bytes.empty(); ++index) {
    const Bytes block = bytes.first(std::min<std::uint64_t>(block_bytes, bytes.size()));
    if (const std::uint64_t found = xxh3(block); found != chunk.sample_hashes[index]) {
      const std::uint64_t count = block_bytes / spec().payload().sample_step();
      throw_bad_data(location(chunk_index, index * count, count) + ": checksum " + hash_text(found) +
                     ", expected " + hash_text(chunk.sample_hashes[index]));
    }
    bytes = bytes.subspan(block.size());
  }
}

void ChunkReader::check_payload(std::size_t chunk_index, std::uint64_t in_chunk, Bytes stored) const {
  static PerThread<ByteBuffer> buffer;
  const ImageSizes& sizes = samples().sizes;
  const std::uint64_t sample = chunks()[chunk_index].first_sample + in_chunk;
  try {
    if (sizes.framed)
      stored =
          raw_bytes_in(stored, sizes.payload_bytes[sample], 0, sizes.payload_bytes[sample], buffer.get());
  } catch (const Error& error) {
    throw_bad_data(location(chunk_index, in_chunk, 1) + ": " + error.what());
  }
  if (const std::uint64_t found = xxh3(stored); found != sizes.payload_xxh3[sample])
    throw_bad_data(location(chunk_index, in_chunk, 1) + ": checksum " + hash_text(found) + ", expected " +
                   hash_text(sizes.payload_xxh3[sample]));
}

void ChunkReader::read_stored(std::size_t chunk_index, std::uint64_t offset, MutableBytes out) const {
  try {
    file_.read_at(offset, out);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::try_again || !file_.has_bad_sector(offset, out.size())) throw;
    throw_bad_data(location(chunk_index) + ": bad sector: bytes " + std::to_string(offset) + "-" +
                   std::to_string(offset + out.size() - 1) +
                   " cannot be read, while other bytes of the file can");
  }
}

void ChunkReader::compare_hash(std::size_t chunk_index, std::uint64_t found) const {
  const StoredChunk& chunk = chunks()[chunk_index];
  if (found != chunk.xxh3)
    throw_bad_data(location(chunk_index) + ": checksum " + hash_text(found) + ", expected " +
                   hash_text(chunk.xxh3));
}

std::uint64_t ChunkReader::hash_of_all(bool reads_padding) const {
  if (contents_.trailer) return contents_.trailer->xxh3;
  return hash_beside_chunks(file_, has_hashes() ? std::span(chunks()) : std::span<const StoredChunk>(),
                            byte_count(), reads_padding ? nullptr : &spec());
}

void ChunkReader::check_hdf5_bytes() const {
  if (!contents_.trailer) return;
  const std::uint64_t found = hash_beside_chunks(file_, chunks(), contents_.trailer->hdf5_bytes);
  if (found != contents_.trailer->hdf5_xxh3)
    throw_bad_data(path() + ": HDF5 metadata: checksum " + hash_text(found) + ", expected " +
                   hash_text(contents_.trailer->hdf5_xxh3));
}

std::string ChunkReader::location(std::size_t chunk_index) const {
  const StoredChunk& chunk = chunks()[chunk_index];
  const auto range = [&](std::uint64_t first) {
    return std::to_string(first) + "-" + std::to_string(first + chunk.sample_count - 1);
  };
  return path() + ": chunk " + std::to_string(chunk_index) + " (" + spec().payload().samples_text() + " " +
         range(chunk.first_sample) +
         (samples_before_ == 0 ? "" : ", " + range(samples_before_ + chunk.first_sample) + " of the pack") +
         ")";
}

std::string ChunkReader::location(std::size_t chunk_index, std::uint64_t in_chunk,
                                  std::uint64_t count) const {
  const StoredChunk& chunk = chunks()[chunk_index];
  const std::uint64_t end = std::min(in_chunk + count, chunk.sample_count);
  if (in_chunk >= end) return location(chunk_index) + ": the padding behind its samples";
  if (end - in_chunk == chunk.sample_count) return location(chunk_index);
  const auto range = [&](std::uint64_t before) {
    const std::uint64_t first = before + chunk.first_sample + in_chunk;
    return std::to_string(first) +
           (end - in_chunk == 1 ? "" : "-" + std::to_string(first + end - in_chunk - 1));
  };
  return location(chunk_index) + (end - in_chunk == 1 ? ": sample " : ": samples ") + range(0) +
         (samples_before_ == 0 ? "" : " (" + range(samples_before_) + " of the pack)");
}

void decode_chunk(const ChunkReader& part, std::size_t chunk_index, Bytes stored, MutableBytes raw,
                  const ChunkUse& use) {
  const StoredChunk& chunk = part.chunks()[chunk_index];
  const PartSpec& spec = part.spec();
  try {
    if (chunk.filtered && part.pieces())
      decode_pieces(*part.pieces(), chunk_index, spec.codec, stored, raw);
    else if (!chunk.filtered && chunk.stored_bytes > chunk.raw_bytes)
      decode_raw_frame(stored, raw);
    else
      chunk_codec(chunk.filtered ? spec.codec : "none").decode(stored, spec.payload().shape(), use, raw);
  } catch (const Error& error) {
    throw Error(error.code(), part.location(chunk_index) + ": " + error.what());
  }
}

std::span<const Container> containers() { return kContainers; }

const Container& container(std::string_view name) {
  for (const Container& row : kContainers)
    if (row.name == name) return row;
  throw_usage("container \"" + std::string(name) + "\": expected one of " +
              joined(kContainers, ", ", &Container::name));
}

const Container& container_of(const std::string& path) {
  const InputFile file(path);
  std::array<std::uint8_t, kRecognisedBytes> first{};
  if (file.byte_count() >= first.size()) file.read_at(0, first);
  for (const Container& row : kContainers)
    if (row.recognises(first)) return row;
  throw_bad_data(
      path +
      ": neither an HDF5 file nor a chunkhit shard; pack images with pack-images, ratings with pack-sparse");
}

std::unique_ptr<ChunkReader> open_part(const std::string& path, const Hdf5Names& names) {
  return container_of(path).open_lone(path, names);
}

std::unique_ptr<ChunkReader> open_matrix_part(const std::string& path, std::uint64_t memory_bytes) {
  return std::move(open_matrix_parts({path}, memory_bytes).front());
}

std::vector<std::unique_ptr<ChunkReader>> open_matrix_parts(const std::vector<std::string>& paths,
                                                            std::uint64_t memory_bytes) {
  if (paths.empty()) return {};
  return container_of(paths.front()).open_matrices(paths, memory_bytes);
}

}  // namespace chunkhit
