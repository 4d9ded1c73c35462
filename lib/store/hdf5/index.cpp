#include "store/hdf5/index.h"

#include <array>
#include <cstring>
#include <string>
#include <string_view>

#include "base/hash.h"
#include "base/throw_error.h"
#include "chunkhit/error.h"

namespace chunkhit {
namespace {

constexpr std::string_view kMagic = "chunkhit index\r\n";
constexpr std::size_t kHashAt = kHdf5TrailerBytes - 8;
// The limit of a shard's index; a larger one is not read into memory.
constexpr std::uint64_t kMaxIndexBytes = UINT32_MAX;

// Offsets in a superblock of version 0, the only one that our writer makes (HDF5 file format, II.A).
constexpr std::size_t kSuperblockBytes = 48;
constexpr std::size_t kSuperblockVersionAt = 8;
constexpr std::size_t kAddressSizeAt = 13;
constexpr std::size_t kBaseAddressAt = 24;
constexpr std::size_t kEndAddressAt = 40;

using TrailerBytes = std::array<std::uint8_t, kHdf5TrailerBytes>;

[[noreturn]] void throw_bad_trailer(const InputFile& file, const std::string& what) {
  throw_bad_data(file.path() + ": trailer: " + what);
}

TrailerBytes encode_trailer(const Hdf5Trailer& trailer) {
  TrailerBytes bytes{};
  std::memcpy(bytes.data(), kMagic.data(), kMagic.size());
  store_little(bytes.data() + 16, trailer.version);
  store_little(bytes.data() + 20, static_cast<std::uint32_t>(trailer.kind));
  store_little(bytes.data() + 24, trailer.hdf5_bytes);
  store_little(bytes.data() + 32, trailer.index_bytes);
  store_little(bytes.data() + 40, trailer.index_xxh3);
  store_little(bytes.data() + 48, trailer.hdf5_xxh3);
  store_little(bytes.data() + kHashAt, xxh3(Bytes(bytes).first(kHashAt)));
  return bytes;
}

/// Decodes a trailer with the right magic and checks all of its numbers.
Hdf5Trailer decode_trailer(const InputFile& file, const TrailerBytes& bytes) {
  const auto version = load_little<std::uint32_t>(bytes.data() + 16);
  const auto kind = load_little<std::uint32_t>(bytes.data() + 20);
  const Hdf5Trailer trailer{.version = version,
                            .kind = static_cast<SampleKind>(kind),
                            .hdf5_bytes = load_little<std::uint64_t>(bytes.data() + 24),
                            .index_bytes = load_little<std::uint64_t>(bytes.data() + 32),
                            .index_xxh3 = load_little<std::uint64_t>(bytes.data() + 40),
                            .hdf5_xxh3 = load_little<std::uint64_t>(bytes.data() + 48),
                            .xxh3 = load_little<std::uint64_t>(bytes.data() + kHashAt)};
  if (version != hdf5_format(false) && version != hdf5_format(true))
    throw_bad_trailer(file, "version " + std::to_string(version) + ", this reader knows versions " +
                                std::to_string(hdf5_format(false)) + " and " +
                                std::to_string(hdf5_format(true)));
  if (const std::uint64_t found = xxh3(Bytes(bytes).first(kHashAt)); found != trailer.xxh3)
    throw_bad_trailer(file, "checksum " + hash_text(found) + ", expected " + hash_text(trailer.xxh3));
  if (trailer.kind < SampleKind::images || trailer.kind > SampleKind::sized_images)
    throw_bad_trailer(file, "kind " + std::to_string(kind) +
                                ", expected 1 (images), 2 (matrices) or 3 (images of their own sizes)");
  if (version == hdf5_format(true) && trailer.kind != SampleKind::images)
    throw_bad_trailer(file, "version " + std::to_string(version) + " of kind " + std::to_string(kind) +
                                ", expected 1 (images)");
  const std::uint64_t before = file.byte_count() - kHdf5TrailerBytes;
  if (trailer.hdf5_bytes > before || trailer.index_bytes != before - trailer.hdf5_bytes)
    throw_bad_trailer(file, "an HDF5 file of " + std::to_string(trailer.hdf5_bytes) +
                                " bytes and an index of " + std::to_string(trailer.index_bytes) +
                                ", expected " + std::to_string(before) + " in all");
  if (trailer.index_bytes > kMaxIndexBytes)
    throw_bad_trailer(
        file, "an index of " + std::to_string(trailer.index_bytes) + " bytes, expected less than 4 GiB");
  return trailer;
}

/// The end-of-file address of a superblock as our writer makes it; nothing for another one.
std::optional<std::uint64_t> end_address(const InputFile& file) {
  std::array<std::uint8_t, kSuperblockBytes> bytes{};
  file.read_at(0, bytes);
  if (bytes[kSuperblockVersionAt] != 0 || bytes[kAddressSizeAt] != 8 ||
      load_little<std::uint64_t>(bytes.data() + kBaseAddressAt) != 0)
    return std::nullopt;
  return load_little<std::uint64_t>(bytes.data() + kEndAddressAt);
}

}  // namespace

void append_hdf5_index(PendingFile& file, std::uint32_t version, SampleKind kind,
                       const std::vector<StoredChunk>& chunks, Bytes index) {
  const InputFile hdf5(file.aside_path());
  const std::uint64_t end = hdf5.byte_count();
  if (end < kSuperblockBytes || end_address(hdf5) != end)
    throw Error(ErrorCode::cannot_write, file.path() + ": the HDF5 library wrote " + std::to_string(end) +
                                             " bytes, but records others");
  file.write_at(end, index);
  file.write_at(end + index.size(), encode_trailer({.version = version,
                                                    .kind = kind,
                                                    .hdf5_bytes = end,
                                                    .index_bytes = index.size(),
                                                    .index_xxh3 = xxh3(index),
                                                    .hdf5_xxh3 = hash_beside_chunks(hdf5, chunks, end)}));
}

std::optional<Hdf5Trailer> read_hdf5_trailer(const InputFile& file) {
  if (file.byte_count() < kSuperblockBytes + kHdf5TrailerBytes) return std::nullopt;
  TrailerBytes bytes{};
  file.read_at(file.byte_count() - bytes.size(), bytes);
  if (as_text(Bytes(bytes).first(kMagic.size())) != kMagic) return std::nullopt;
  const Hdf5Trailer trailer = decode_trailer(file, bytes);
  if (end_address(file) != trailer.hdf5_bytes) return std::nullopt;
  return trailer;
}

void check_hdf5_hash(const InputFile& file, const Hdf5Trailer& trailer) {
  if (const std::uint64_t found = hash_beside_chunks(file, {}, trailer.hdf5_bytes);
      found != trailer.hdf5_xxh3)
    throw_bad_data(file.path() + ": HDF5 file: checksum " + hash_text(found) + ", expected " +
                   hash_text(trailer.hdf5_xxh3));
}

}  // namespace chunkhit
