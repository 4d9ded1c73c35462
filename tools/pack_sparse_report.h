// What pack-sparse says at its end.
#pragma once

#include <string>

#include "chunkhit/pack.h"

namespace chunkhit {

/// Prints the statistics of a run, or those that --dry-run expects.
void print_report(const PackSparseReport& report, bool dry_run);

/// Prints what --count-items wrote to `output`, and how the parts are packed with it.
void print_counted(const std::string& output, const PackSparseReport& report);

}  // namespace chunkhit
