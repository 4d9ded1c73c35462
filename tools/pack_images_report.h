// What pack-images prints: what would be packed, and what was.
#pragma once

#include "chunkhit/pack.h"

namespace chunkhit {

/// Prints counts, chunk plan, predicted hit rates and free space.
void print_preview(const PackImagesSpec& spec, const PackImagesOptions& options,
                   const PackImagesPreview& preview);

/// Prints what was packed, what was rejected and why, how fast, and what to run next.
void print_report(const PackImagesReport& report);

}  // namespace chunkhit
