// What is known of an open part.
#pragma once

#include "chunkhit/pack.h"
#include "store/part.h"

namespace chunkhit {

/// Describes a part without its manifest.
[[nodiscard]] PackInfo part_info(const ChunkReader& part);

}  // namespace chunkhit
