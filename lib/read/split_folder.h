// The folder that `--split` writes: a pack in each of its folders.
#pragma once

#include <string>
#include <vector>

namespace chunkhit {

/// The packs that a path names: those in the folder of a `--split`, by name, finished or not; else the path
/// itself, whatever it is.
[[nodiscard]] std::vector<std::string> packs_of(const std::string& path);

}  // namespace chunkhit
