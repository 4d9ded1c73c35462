// Compares an open part with what its pack's manifest lists.
#pragma once

#include <cstddef>

#include "manifest/manifest.h"
#include "store/part.h"

namespace chunkhit {

/// Throws bad_data when a part's own hash, with its index and the recorded hashes of its chunks, is not the
/// manifest's: it is of another pack with an equal list, or changed. No pixel is read.
void check_part_hash(const ChunkReader& part, const PartRecord& listed);

/// Throws bad_data if a part of matrices is not the one that the manifest lists at this index.
void check_listed(const ChunkReader& part, const MatrixManifest& manifest, std::size_t index);

}  // namespace chunkhit
