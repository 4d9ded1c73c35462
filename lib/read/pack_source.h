// Paths of packs and parts: detected, opened, and their labels compared.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cache/chunk_set.h"
#include "chunkhit/pack_info.h"
#include "manifest/manifest.h"
#include "store/part.h"

namespace chunkhit {

/// A path that was distinguished; exactly one of manifest, matrix and part is set.
struct PackSource {
  std::string path;                      ///< path as given
  std::string folder;                    ///< folder of the pack
  std::optional<Manifest> manifest;      ///< manifest of a pack of images
  std::optional<MatrixManifest> matrix;  ///< manifest of a pack of matrices
  std::string part;                      ///< path of a single part
};

/// Detects what `path` names; throws bad_data with what to do when it is no finished pack and no part.
[[nodiscard]] PackSource open_source(const std::string& path);
/// The same of all paths, in their order; throws usage when there are none.
[[nodiscard]] std::vector<PackSource> open_sources(const std::vector<std::string>& paths);

/// Throws usage where datasets are named and none of the sources is a single HDF5 file: of all else what they
/// hold is known.
void check_names(std::span<const PackSource> sources, const Hdf5Names& names);

/// The folders of the images of a pack, or of each pack in a merged one, when they were packed; empty where
/// run.json does not say it.
[[nodiscard]] std::vector<std::string> roots_of(const std::string& folder, const PackManifest& manifest);

/// The paths of the parts that a manifest lists.
[[nodiscard]] std::vector<std::string> part_paths(const std::string& folder,
                                                  const std::vector<PartRecord>& parts);

/// Tells the parts of a pack how many samples are before each.
void count_samples_before(std::span<const std::unique_ptr<ChunkReader>> parts);

/// Opens the parts of a pack of images, on a server several at a time; throws as `open_part`.
[[nodiscard]] std::vector<std::unique_ptr<ChunkReader>> open_pack_parts(const std::string& folder,
                                                                        const Manifest& manifest);

/// The numbers that each sample has as its label, 0 for class ids; throws bad_data where parts differ in them
/// or in their names.
[[nodiscard]] std::size_t count_label_columns(const ChunkSet& chunks);

}  // namespace chunkhit
