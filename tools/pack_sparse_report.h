// What pack-sparse says at its end.
#pragma once

#include "chunkhit/pack.h"

namespace chunkhit {

/// Prints the statistics of a run, or those that --dry-run expects.
void print_report(const PackSparseReport& report, bool dry_run);

/// Prints what was planned, and how to run it.
void print_plan(const PlanReport& plan);

}  // namespace chunkhit
