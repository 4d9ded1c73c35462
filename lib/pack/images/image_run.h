// Runs of pack_images over samples that a program added.
#pragma once

#include <string>

#include "chunkhit/pack.h"
#include "listing/sample_list.h"
#include "types/image.h"

namespace chunkhit {

/// Checks spec and options where a program adds the samples, whose labels the spec says to be kWriterLabels,
/// and the folders of the packs. Throws as pack_images.
[[nodiscard]] PackImagesOptions checked_writer_options(const PackImagesSpec& spec, PackImagesOptions options);

/// The header that pixels would have in a file: binary PNM, or with alpha PAM. Hashes and sizes of samples
/// count it, as when the writer made such files.
[[nodiscard]] std::string pnm_header(const SampleShape& pixels);

/// pack_images of a list whose samples lie in containers.
[[nodiscard]] PackImagesReport pack_list(const PackImagesSpec& spec, const PackImagesOptions& options,
                                         SampleList list);

}  // namespace chunkhit
