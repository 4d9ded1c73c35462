// The HDF5 container. Layout: schemas/images-hdf5.md.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/bytes.h"
#include "store/part.h"

namespace chunkhit {

// Names in the file.
inline constexpr const char* kImagesName = "images";
inline constexpr const char* kDataName = "data";        // of images of their own sizes
inline constexpr const char* kSamplesName = "samples";  // images and their masks or views, which these show:
inline constexpr const char* kLabelsName = "labels";
inline constexpr const char* kRowsName = "rows";
inline constexpr const char* kFilesName = "files";
inline constexpr const char* kClassesName = "classes";
inline constexpr const char* kColumnsName = "label_columns";
inline constexpr const char* kKeptColumnsName = "columns";
inline constexpr const char* kFormatAttribute = "chunkhit_format";

/// HDF5 counts a chunk's bytes in 32 bits; half of that keeps away from the edge.
inline constexpr std::uint64_t kMaxHdf5ChunkBytes = std::uint64_t{1} << 31;

/// Gives the size of the blocks that hold a part's metadata: 1 MiB, so that they lie together, and less where
/// a chunk of `chunk_bytes` raw bytes is less.
[[nodiscard]] std::uint64_t hdf5_metadata_block_bytes(std::uint64_t chunk_bytes);

/// Detects an HDF5 file by its first bytes.
[[nodiscard]] bool is_hdf5_part(Bytes first_bytes);

/// Starts an HDF5 part aside; throws cannot_write.
[[nodiscard]] std::unique_ptr<ChunkWriter> create_hdf5_part(const std::string& path, const PartSpec& spec);

/// Opens a part of ours by its index, without the HDF5 library; throws bad_data when it is damaged, or was
/// made or changed by another program.
[[nodiscard]] std::unique_ptr<ChunkReader> open_hdf5_part(const std::string& path);

/// Opens a part of ours in the same way, and an external file, or labels other than the part's own, through
/// the HDF5 library, after store/hdf5/external_check.h; throws bad_data when the file is
/// damaged or holds no such samples.
[[nodiscard]] std::unique_ptr<ChunkReader> open_single_hdf5(const std::string& path, const Hdf5Names& names);

}  // namespace chunkhit
