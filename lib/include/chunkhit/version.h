// The version of the library, and of the libraries that it was built with.
#pragma once

#include <chunkhit/error.h>

#include <string>
#include <utility>
#include <vector>

// The version that a program is compiled for.
#define CHUNKHIT_VERSION_MAJOR 0
#define CHUNKHIT_VERSION_MINOR 2
#define CHUNKHIT_VERSION_PATCH 0

namespace chunkhit {

/// The version of the library that is loaded: "0.2.0".
[[nodiscard]] CHUNKHIT_API std::string version();

/// Name and version of each library that chunkhit was built with.
[[nodiscard]] CHUNKHIT_API std::vector<std::pair<std::string, std::string>> library_versions();

/// Throws usage where the library that is loaded is of another version than the headers that a program was
/// compiled with: sizes of structs may differ. Python's module does so when it is imported.
CHUNKHIT_API void check_version(int major = CHUNKHIT_VERSION_MAJOR, int minor = CHUNKHIT_VERSION_MINOR,
                                int patch = CHUNKHIT_VERSION_PATCH);

}  // namespace chunkhit
