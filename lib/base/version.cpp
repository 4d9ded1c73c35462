#include "chunkhit/version.h"

#include <algorithm>
#include <string_view>

namespace chunkhit {

std::string version() { return CHUNKHIT_VERSION; }

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
