// Some images before and after they are transformed, side by side in a PNG: what a dry run shows.
#pragma once

#include <vector>

#include "chunkhit/pack.h"
#include "pack/images/image_input.h"
#include "pack/images/memory_plan.h"

namespace chunkhit {

/// Writes `run.options.sheet`: up to 16 images that are evenly spread over the list, each as its file has it,
/// before EXIF turns it, and as its sample, with the classes of its mask as colors over it. Images that would
/// be rejected stay blank, with their reason in what is returned. Throws cannot_write, try_again.
[[nodiscard]] std::vector<SheetImage> write_preview_sheet(const ImageRun& run, const ImageInput& input,
                                                          const MemoryPlan& memory);

}  // namespace chunkhit
