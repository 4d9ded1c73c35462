#include "chunkhit/version.h"

#include <algorithm>
#include <string_view>

namespace chunkhit {

std::string version() { return CHUNKHIT_VERSION; }

void check_version(int major, int minor, int patch) {
  const std::string built = std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
  if (version() != built)
    throw Error(ErrorCode::usage, "compiled with headers of chunkhit " + built + ", loaded a library of " +
                                      version() + "; compile again, or look at LD_LIBRARY_PATH");
}

std::vector<std::pair<std::string, std::string>> library_versions() {
  // "HDF5 1.10.8,zstd 1.5.4", written by the build.
  std::vector<std::pair<std::string, std::string>> libraries;
  std::string_view left = CHUNKHIT_LIBRARIES;
  while (!left.empty()) {
    const std::string_view entry = left.substr(0, left.find(','));
    const std::size_t space = entry.rfind(' ');
    libraries.emplace_back(entry.substr(0, space), entry.substr(space + 1));
    left.remove_prefix(std::min(left.size(), entry.size() + 1));
  }
  return libraries;
}

}  // namespace chunkhit
