// What pack-images and pack-run print: what would be packed, and what was.
#pragma once

#include "chunkhit/pack.h"
#include "progress.h"

namespace chunkhit {

/// Prints counts, chunk plan, predicted hit rates and free space.
void print_preview(const PackImagesSpec& spec, const PackImagesOptions& options,
                   const PackImagesPreview& preview);

/// Prints what was packed, what was rejected and why, how fast, and what to run next.
void print_report(const PackImagesReport& report);

/// Prints what was planned, and the lines that run the tasks.
void print_report(const PlanReport& report);

/// Prints what pack-run packed, and what to run next.
void print_report(const RunPlanOptions& options, const RunPlanReport& report);

/// How far packing is, to show.
[[nodiscard]] ShownProgress shown(const PackProgress& progress, bool is_from_stdin);

}  // namespace chunkhit
