// What is known of an open part, or of a pack by its manifest.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "chunkhit/pack_info.h"
#include "read/pack_source.h"
#include "store/part.h"

namespace chunkhit {

/// Describes a part without its manifest.
[[nodiscard]] PackInfo part_info(const ChunkReader& part);

/// Counts the samples of parts whose number is 1, by label column. Gives nothing where labels are class ids
/// or other numbers.
[[nodiscard]] std::vector<std::uint64_t> count_labels(std::span<const std::unique_ptr<ChunkReader>> parts);

/// Opens and describes a single part, or an external HDF5 file.
[[nodiscard]] PackInfo single_part_info(const std::string& path, const Hdf5Names& names);

/// Describes a finished pack in `folder` without looking at its parts.
[[nodiscard]] PackInfo manifest_info(const std::string& folder, const Manifest& manifest);
[[nodiscard]] PackInfo manifest_info(const std::string& folder, const MatrixManifest& manifest);

/// Describes an open source by its manifest, or by its part, the first of `chunks`.
[[nodiscard]] PackInfo source_info(const PackSource& source, const ChunkSet& chunks);

}  // namespace chunkhit
