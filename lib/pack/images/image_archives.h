// Inputs that hold many images in one file each: tars, compressed or not, and IDX files.
#pragma once

#include <string>

#include "listing/sample_list.h"
#include "pack/images/image_run.h"

namespace chunkhit {

/// Lists the samples of tars. What is compressed, or cannot be read twice, is copied into a file without a
/// name beside the output, which the containers of the list keep. Throws bad_data, and cannot_write where
/// there is no room for it. Once `run.options.stop` is set, the list is of no use.
[[nodiscard]] SampleList list_tars(const ImageRun& run, const TarSource& source);
/// Lists the images of an IDX file likewise.
[[nodiscard]] SampleList list_idx(const ImageRun& run, const std::string& path);

/// The folder itself, or the nearest one above it that exists.
[[nodiscard]] std::string existing_folder(const std::string& path);

}  // namespace chunkhit
