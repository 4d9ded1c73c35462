// What pack-info prints of packs that are not finished.
#pragma once

#include <cstdint>
#include <string>

#include "chunkhit/pack.h"

namespace chunkhit {

/// ", 3 packed with warnings"; empty for none.
[[nodiscard]] std::string warned_text(std::uint64_t warned);

/// Prints how far a pack is, and how to go on.
void print_unfinished(const UnfinishedPack& pack);

/// The same of a plan and its tasks.
void print_plan_status(const PlanStatus& status);

}  // namespace chunkhit
