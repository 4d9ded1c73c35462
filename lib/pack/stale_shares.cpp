#include "pack/stale_shares.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/file.h"
#include "chunkhit/error.h"
#include "manifest/manifest.h"
#include "pack/pack_folder.h"

namespace chunkhit {
namespace {

bool is_share_of(const std::string& folder, std::uint64_t input_xxh3) {
  if (held_format(folder) != kImagesFormat) return false;
  const std::string path = folder + "/" + std::string(kManifestName);
  try {
    const Manifest manifest = parse_manifest(as_text(read_file(path, kMaxManifestBytes)), path);
    const auto names_share = [](const SpecEntry& entry) { return entry.name == "split-name"; };
    return manifest.input_xxh3 == input_xxh3 && std::ranges::any_of(manifest.spec, names_share);
  } catch (const Error&) {
    return false;  // nobody reads it as it is
  }
}

}  // namespace

std::vector<std::string> stale_shares(const std::string& output, std::uint64_t input_xxh3,
                                      const std::set<std::string>& wanted) {
  std::vector<std::string> stale;
  std::error_code error;
  if (!std::filesystem::is_directory(output, error)) return stale;
  for (const std::string& name : folder_entries(output)) {
    const std::string path = output + "/" + name;
    if (wanted.contains(name) || !std::filesystem::is_directory(std::filesystem::symlink_status(path, error)))
      continue;
    if (is_share_of(path, input_xxh3)) stale.push_back(path);
  }
  std::ranges::sort(stale);
  return stale;
}

}  // namespace chunkhit
