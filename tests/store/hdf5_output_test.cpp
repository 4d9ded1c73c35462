#include <gtest/gtest.h>
#include <hdf5.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "chunkhit/error.h"
#include "store/hdf5/output.h"
#include "support/temporary_folder.h"

namespace chunkhit {
namespace {

constexpr std::size_t kChunkBytes = 5000;
constexpr std::size_t kChunkCount = 300;  // tables of HDF5's own lie between them
constexpr std::uint64_t kMetadataBlockBytes = 16 << 10;

ByteBuffer chunk_bytes(std::size_t index) {
  ByteBuffer bytes(kChunkBytes);
  std::iota(bytes.begin(), bytes.end(), static_cast<std::uint8_t>(index));
  return bytes;
}

Hdf5Handle create_bytes(hid_t file) {
  const hsize_t none = 0;
  const hsize_t most = H5S_UNLIMITED;
  const hsize_t chunk = kChunkBytes;
  const Hdf5Handle space(H5Screate_simple(1, &none, &most), H5Sclose);
  const Hdf5Handle list(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  H5Pset_chunk(list.get(), 1, &chunk);
  H5Pset_fill_time(list.get(), H5D_FILL_TIME_NEVER);
  H5Pset_obj_track_times(list.get(), false);
  return {H5Dcreate2(file, "bytes", H5T_NATIVE_UINT8, space.get(), H5P_DEFAULT, list.get(), H5P_DEFAULT),
          H5Dclose};
}

using WriteChunk = std::function<void(hid_t dataset, hsize_t first, const ByteBuffer& chunk)>;

void write_chunks(hid_t file, const WriteChunk& write) {
  const Hdf5Handle dataset = create_bytes(file);
  for (std::size_t index = 0; index < kChunkCount; ++index) {
    const hsize_t extent = (index + 1) * kChunkBytes;
    H5Dset_extent(dataset.get(), &extent);
    write(dataset.get(), index * kChunkBytes, chunk_bytes(index));
  }
}

/// Adds all chunks; returns their offsets.
std::vector<std::uint64_t> add_chunks(Hdf5Output& output) {
  std::vector<std::uint64_t> offsets;
  write_chunks(output.file(), [&](hid_t dataset, hsize_t first, const ByteBuffer& chunk) {
    offsets.push_back(output.add_chunk(dataset, std::array{first}, 0, chunk));
  });
  return offsets;
}

TEST(Hdf5Output, HasTheBytesThatHdf5sOwnDriverWrites) {
  const TemporaryFolder folder;
  Hdf5Output output(folder.path("ours.h5"), kMetadataBlockBytes);
  const std::vector<std::uint64_t> offsets = add_chunks(output);
  // As other threads may: after later chunks, and in another order.
  for (std::size_t index = kChunkCount; index-- > 0;)
    output.pending().write_at(offsets[index], chunk_bytes(index));
  output.close();
  output.pending().publish();

  const Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  const Hdf5Handle creation(H5Pcreate(H5P_FILE_CREATE), H5Pclose);
  H5Pset_libver_bounds(access.get(), H5F_LIBVER_EARLIEST, H5F_LIBVER_V18);
  H5Pset_meta_block_size(access.get(), kMetadataBlockBytes);
  H5Pset_small_data_block_size(access.get(), 0);
  H5Pset_obj_track_times(creation.get(), false);
  {
    const Hdf5Handle file(
        H5Fcreate(folder.path("hdf5s.h5").c_str(), H5F_ACC_TRUNC, creation.get(), access.get()), H5Fclose);
    write_chunks(file.get(), [](hid_t dataset, hsize_t first, const ByteBuffer& chunk) {
      H5Dwrite_chunk(dataset, H5P_DEFAULT, 0, &first, chunk.size(), chunk.data());
    });
  }
  EXPECT_EQ(read_file(folder.path("ours.h5"), 1 << 30), read_file(folder.path("hdf5s.h5"), 1 << 30));
}

TEST(Hdf5Output, EndsBehindChunksThatAreNotWrittenYet) {
  const TemporaryFolder folder;
  Hdf5Output output(folder.path("part.h5"), kMetadataBlockBytes);
  const std::vector<std::uint64_t> offsets = add_chunks(output);
  output.close();
  output.pending().publish();
  const ByteBuffer bytes = read_file(folder.path("part.h5"), 1 << 30);
  ASSERT_GE(bytes.size(), offsets.back() + kChunkBytes);
  for (const std::uint64_t offset : offsets)
    EXPECT_TRUE(
        std::ranges::all_of(Bytes(bytes).subspan(offset, kChunkBytes), [](auto byte) { return byte == 0; }));
}

TEST(Hdf5Output, ThrowsAnErrorThatTheLibraryDidNotSee) {
  const TemporaryFolder folder;
  const std::string path = folder.path("part.h5");
  Hdf5Output output(path, kMetadataBlockBytes);
  add_chunks(output);
  output.pending().flush();  // closes the descriptor: no later write succeeds
  try {
    output.close();
    FAIL() << "closed without an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::cannot_write);
    EXPECT_EQ(std::string(error.what()), path + ": cannot set the size: Bad file descriptor");
  }
}

}  // namespace
}  // namespace chunkhit
