// Any bytes as a shard, or as an HDF5 part by its own index: they end in a part or in an Error. Tried twice:
// as they are, and with the hashes and lengths of header, trailer and index set right, so that what lies
// behind those checks is reached.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/hash.h"
#include "chunkhit/error.h"
#include "read/sized_images.h"
#include "store/hdf5/image_part.h"
#include "store/hdf5/index.h"
#include "store/part.h"
#include "store/shard.h"

namespace {

using namespace chunkhit;

constexpr std::size_t kHeaderBytes = 4096;
constexpr std::uint64_t kMaxRawBytes = 1 << 22;

void require(bool holds) {
  if (!holds) std::abort();
}

/// Sets what schemas/images-hdf5.md says of the hashes of trailer and index.
void set_trailer_hashes(std::vector<std::uint8_t>& bytes) {
  if (bytes.size() < kHdf5TrailerBytes) return;
  const std::uint64_t before = bytes.size() - kHdf5TrailerBytes;
  std::uint8_t* const trailer = bytes.data() + before;
  const auto end = load_little<std::uint64_t>(trailer + 24);
  if (end <= before) store_little(trailer + 40, xxh3(Bytes(bytes).subspan(end, before - end)));
  store_little(trailer + 56, xxh3(Bytes(trailer, 56)));
}

/// Sets what schemas/shard.md says of the hashes of header and index, and of the file's length.
void set_hashes(std::vector<std::uint8_t>& bytes) {
  if (is_hdf5_part(bytes)) return set_trailer_hashes(bytes);
  if (bytes.size() < kHeaderBytes) return;
  const auto index_offset = load_little<std::uint64_t>(&bytes[104]);
  const auto index_bytes = load_little<std::uint64_t>(&bytes[112]);
  const std::uint64_t size = bytes.size();
  if (index_offset < size && size - index_offset >= 8 && index_bytes <= size - index_offset - 8)
    store_little(&bytes[120], xxh3(Bytes(bytes).subspan(index_offset + 8, index_bytes)));
  store_little(&bytes[128], size);
  store_little(&bytes[4088], xxh3(Bytes(bytes).first(4088)));
}

/// Decodes the images of their own sizes in a chunk's bytes, whole and a part of each.
void decode_images(const ChunkReader& part, std::size_t index, Bytes left) {
  const std::uint32_t channels = part.spec().images().sample.channels;
  SizedImageDecoder decoder;
  for (std::uint64_t sample = part.chunks()[index].first_sample; !left.empty(); ++sample) {
    const StoredImage image = stored_image(part.samples().sizes, sample, left.data());
    left = left.subspan(image.frame.size());
    const std::uint32_t width = image.upright_width(), height = image.upright_height();
    if (std::uint64_t{width} * height * channels > kMaxRawBytes) continue;
    try {
      ByteBuffer pixels(std::size_t{width} * height * channels);
      static_cast<void>(
          decoder.decode(image, {width / 3, height / 4, width / 2 + 1, height / 2 + 1}, channels));
      decoder.decode_whole(image, channels, pixels.data());
    } catch (const ImageError&) {
      continue;
    } catch (const Error& error) {
      require(error.code() == ErrorCode::bad_data);
    }
  }
}

/// Decodes a chunk whether its hash is right or not.
void decode(const ChunkReader& part, std::size_t index, Bytes file) {
  const StoredChunk& chunk = part.chunks()[index];
  if (chunk.raw_bytes > kMaxRawBytes) return;
  ByteBuffer raw(chunk.raw_bytes);
  try {
    decode_chunk(part, index, file.subspan(chunk.offset, chunk.stored_bytes), raw);
    if (part.spec().holds_rows())
      static_cast<void>(decode_row_block_header(raw, part.spec().rows().matrix));
    else if (part.spec().payload().frames_samples())
      decode_images(part, index, raw);
  } catch (const Error& error) {
    require(error.code() == ErrorCode::bad_data);
  }
}

void read(const std::string& path, Bytes file) {
  try {
    const std::unique_ptr<ChunkReader> part = is_hdf5_part(file) ? open_hdf5_part(path) : open_shard(path);
    const PartSamples& samples = part->samples();
    const TextList& names = part->spec().holds_rows() ? samples.row_ids : samples.files;
    require(names.size() == samples.rows.size());
    for (std::size_t i = 0; i < names.size(); ++i) require(names[i].size() <= file.size());
    for (std::size_t i = 0; i < part->chunks().size(); ++i) decode(*part, i, file);
  } catch (const Error& error) {
    require(error.code() == ErrorCode::bad_data);
  }
}

void read_bytes(const std::vector<std::uint8_t>& bytes) {
  const FileDescriptor file(::memfd_create("shard", MFD_CLOEXEC));
  require(file.is_open() &&
          ::write(file.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  read("/proc/self/fd/" + std::to_string(file.get()), bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::uint8_t> bytes(data, data + size);
  read_bytes(bytes);
  set_hashes(bytes);
  read_bytes(bytes);
  return 0;
}
