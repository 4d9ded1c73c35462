// What a pack records of its run → the command that makes it again.
#pragma once

#include <string>

#include "chunkhit/pack_info.h"

namespace chunkhit {

/// "pack-sparse INPUT --min-user 5": flags whose values are not the defaults, quoted for a shell. Files are
/// not recorded, only what they held: their flags have the shape of the value. Empty where no command made
/// it.
[[nodiscard]] std::string recipe_text(const PackInfo& info);

}  // namespace chunkhit
