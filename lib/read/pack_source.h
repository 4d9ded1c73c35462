// What a path names: a finished pack, or a single part.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cache/chunk_set.h"
#include "chunkhit/pack.h"
#include "manifest/manifest.h"
#include "manifest/matrix_manifest.h"

namespace chunkhit {

/// A path that was distinguished; exactly one of manifest, matrix and part is set.
struct PackSource {
  std::string path;                      ///< as it was given
  std::string folder;                    ///< of the pack
  std::optional<Manifest> manifest;      ///< of a pack of images
  std::optional<MatrixManifest> matrix;  ///< of a pack of matrices
  std::string part;                      ///< path of a single part
};

/// Detects what `path` names; throws bad_data with what to do when it is no finished pack and no part.
[[nodiscard]] PackSource open_source(const std::string& path);
/// The same of all paths, in their order; throws usage when there are none.
[[nodiscard]] std::vector<PackSource> open_sources(const std::vector<std::string>& paths);

/// Throws usage where datasets are named and none of the sources is a single HDF5 file: of all else what they
/// hold is known.
void check_names(std::span<const PackSource> sources, const Hdf5Names& names);

/// The paths of the parts that a manifest lists.
[[nodiscard]] std::vector<std::string> part_paths(const std::string& folder,
                                                  const std::vector<PartRecord>& parts);

/// Throws bad_data when a part's own hash, with its index and the recorded hashes of its chunks, is not the
/// manifest's: it is of another pack with an equal list, or changed. No pixel is read.
void check_part_hash(const ChunkReader& part, const PartRecord& listed);

/// The numbers that each sample has as its label, 0 for class ids; throws bad_data where parts differ in them
/// or in their names.
[[nodiscard]] std::size_t count_label_columns(const ChunkSet& chunks);

}  // namespace chunkhit
