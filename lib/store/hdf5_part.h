// The HDF5 container. Layout: schemas/images-hdf5.md.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/bytes.h"
#include "store/part.h"

namespace chunkhit {

/// HDF5 counts a chunk's bytes in 32 bits; the half of that keeps away from its edge.
inline constexpr std::uint64_t kMostHdf5ChunkBytes = std::uint64_t{1} << 31;

/// Tells an HDF5 file by its first bytes.
[[nodiscard]] bool is_hdf5_part(Bytes first_bytes);

/// Starts an HDF5 part aside; throws cannot_write.
[[nodiscard]] std::unique_ptr<ChunkWriter> create_hdf5_part(const std::string& path, const PartSpec& spec);

/// Opens an HDF5 part, or an ordinary file of that shape; throws bad_data when it is damaged or something
/// else.
[[nodiscard]] std::unique_ptr<ChunkReader> open_hdf5_part(const std::string& path);

}  // namespace chunkhit
