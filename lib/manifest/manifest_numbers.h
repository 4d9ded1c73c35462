// Checks the numbers of a manifest against each other, and an open part against its manifest.
#pragma once

#include <cstddef>

#include "manifest/manifest.h"
#include "store/part.h"

namespace chunkhit {

/// Throws bad_data unless counts add up, chunks and parts have sizes that their container allows, and no
/// product of them leaves 63 bits.
void check_numbers(const Manifest& manifest);
void check_numbers(const MatrixManifest& manifest);
/// The same of the record of one part, whose sums must be those of as many pixels of 8 bits.
void check_numbers(const PartRecord& part);

/// Throws bad_data when a part's own hash, with its index and the recorded hashes of its chunks, is not the
/// manifest's: it is of another pack with an equal list, or changed. No pixel is read.
void check_part_hash(const ChunkReader& part, const PartRecord& listed);

/// Throws bad_data if a part of matrices is not the one that the manifest lists at this index.
void check_listed(const ChunkReader& part, const MatrixManifest& manifest, std::size_t index);

}  // namespace chunkhit
