// The datasets of samples of one shape in an HDF5 part: /images; with masks /samples, and /images and /masks
// as views of it. Layout: schemas/images-hdf5.md.
#pragma once

#include <hdf5.h>

#include <array>
#include <cstdint>
#include <vector>

#include "store/hdf5/handle.h"
#include "store/part.h"
#include "types/sample_shape.h"

namespace chunkhit {

/// Gives the dimensions of `count` images.
[[nodiscard]] std::array<hsize_t, 4> image_dimensions(const SampleShape& sample, hsize_t count);

/// Dimensions of the dataset of chunks: those of images, or all bytes of each image and its mask or view.
[[nodiscard]] std::vector<hsize_t> sample_dimensions(const SampleShape& sample, hsize_t count);

/// Creates the dataset of chunks, without samples.
[[nodiscard]] Hdf5Handle create_samples(const Hdf5Check& check, hid_t file, const PartSpec& spec);

/// Creates /masks or /views, and /images, as virtual datasets of so many samples; returns /images. HDF5 1.10
/// and later read them.
[[nodiscard]] Hdf5Handle create_views(const Hdf5Check& check, hid_t file, const SampleShape& sample,
                                      std::uint64_t sample_count);

}  // namespace chunkhit
