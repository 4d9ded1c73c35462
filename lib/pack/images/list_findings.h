// What can be said against a list of images before it is packed.
#pragma once

#include <string>
#include <vector>

#include "pack/images/image_input.h"
#include "pack/images/image_run.h"

namespace chunkhit {

/// The worst three of: files that would be rejected, images that are enlarged (64 files spread over the
/// list are read), classes that a pack of the split lacks, classes with few images; the worst first.
[[nodiscard]] std::vector<std::string> find_in_list(const ImageRun& run, const ImageInput& input);

/// Says of which views 8 files have 16 bits a value and low values alone, which become dark.
[[nodiscard]] std::vector<std::string> dark_view_notices(const ImageRun& run, const ImageInput& input);

}  // namespace chunkhit
