// What pack-sparse says at its end.
#pragma once

#include "chunkhit/pack.h"

namespace chunkhit {

/// Prints the account of a run, or of what --dry-run foresees.
void print_report(const PackSparseReport& report, bool dry_run);

}  // namespace chunkhit
