// What a path names: a finished pack, or a lone part.
#pragma once

#include <optional>
#include <string>

#include "manifest/manifest.h"

namespace chunkhit {

/// A path that was told apart; exactly one of the two members is set.
struct PackSource {
  std::string folder;                ///< of the pack
  std::optional<Manifest> manifest;  ///< of a pack
  std::string part;                  ///< path of a lone part
};

/// Tells what `path` names; throws bad_data with what to do when it is no finished pack and no part.
[[nodiscard]] PackSource open_source(const std::string& path);

}  // namespace chunkhit
