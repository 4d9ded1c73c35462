// Writes HDF5 parts of images of their own sizes. Layout: schemas/images-hdf5.md, "Images of their own
// sizes".
#pragma once

#include <memory>
#include <string>

#include "store/part.h"

namespace chunkhit {

/// Starts a part aside; `spec` was checked. Throws cannot_write.
[[nodiscard]] std::unique_ptr<ChunkWriter> create_sized_hdf5_part(const std::string& path,
                                                                  const PartSpec& spec);

}  // namespace chunkhit
