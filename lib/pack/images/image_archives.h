// Inputs that hold many images in one file each: tars, compressed or not; and which inputs of a run are such.
#pragma once

#include <string>
#include <vector>

#include "chunkhit/pack.h"
#include "listing/sample_list.h"

namespace chunkhit {

/// Gives `options.inputs` and `options.root` one meaning: a folder of images is the root, without inputs;
/// archives are inputs, and the root is the folder that all of them are in. Throws usage, and bad_data for an
/// input that is not there.
void take_inputs(PackImagesOptions& options);

/// The tars, compressed or not, below a root that holds no images, sorted by their paths; else none. Throws
/// bad_data for a link that leads out of the root.
[[nodiscard]] std::vector<std::string> find_tars(const PackImagesSpec& spec, const std::string& root);

/// Lists the samples of `options.inputs`. What is compressed, or cannot be read twice, is copied into a file
/// without a name in `spool_folder`, which the containers of the list keep. Throws bad_data, and cannot_write
/// where there is no room for it. Once `options.stop` is set, the list is of no use.
[[nodiscard]] SampleList list_archives(const PackImagesSpec& spec, const PackImagesOptions& options,
                                       std::string spool_folder);

/// The folder itself, or the nearest one above it that exists.
[[nodiscard]] std::string existing_folder(const std::string& path);

}  // namespace chunkhit
