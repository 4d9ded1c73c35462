// The version of the library, and of the libraries that it was built with.
#pragma once

#include <chunkhit/error.h>

#include <string>
#include <utility>
#include <vector>

namespace chunkhit {

/// The version of chunkhit: "0.1.0".
[[nodiscard]] CHUNKHIT_API std::string version();

/// Name and version of each library that chunkhit was built with.
[[nodiscard]] CHUNKHIT_API std::vector<std::pair<std::string, std::string>> library_versions();

}  // namespace chunkhit
