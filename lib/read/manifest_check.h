// Whether a manifest says the same as its parts' own records.
#pragma once

#include <string>
#include <vector>

#include "manifest/manifest.h"
#include "store/part.h"

namespace chunkhit {

/// Compares what the manifest sums up with what the parts' records add up to; `parts` are all of them.
[[nodiscard]] std::vector<std::string> compare_with_parts(const std::string& manifest_path,
                                                          const Manifest& manifest,
                                                          const std::vector<PartManifest>& parts);

/// Compares the manifest with the structure that a part itself has.
[[nodiscard]] std::vector<std::string> compare_with_part(const std::string& part_path,
                                                         const Manifest& manifest, const PartSpec& part);

}  // namespace chunkhit
