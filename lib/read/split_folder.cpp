#include "read/split_folder.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "manifest/manifest.h"

namespace chunkhit {
namespace {

namespace fs = std::filesystem;

/// Returns whether a folder holds a finished pack or parts of an unfinished one.
bool holds_pack(const fs::path& folder) {
  std::error_code error;
  if (fs::exists(folder / kManifestName, error)) return true;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().filename().string().starts_with("part-")) return true;
  return false;
}

}  // namespace

/// A folder without a pack of its own stands for the packs directly below it, as `--split` writes them.
std::vector<std::string> packs_of(const std::string& path) {
  std::error_code error;
  std::vector<std::string> packs;
  if (!fs::is_directory(path, error) || holds_pack(path)) return {path};
  for (const auto& entry : fs::directory_iterator(path, error))
    if (entry.is_directory(error) && holds_pack(entry.path())) packs.push_back(entry.path().string());
  std::sort(packs.begin(), packs.end());
  return packs.empty() ? std::vector{path} : packs;
}

}  // namespace chunkhit
