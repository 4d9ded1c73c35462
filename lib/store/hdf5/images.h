// The dataset of chunks in an HDF5 part, and what the library knows of them. Layout: schemas/images-hdf5.md.
#pragma once

#include <hdf5.h>

#include <array>
#include <cstdint>
#include <string>

#include "store/hdf5/handle.h"
#include "store/part.h"

namespace chunkhit {

inline constexpr const char* kImagesName = "images";
inline constexpr const char* kLabelsName = "labels";
inline constexpr const char* kRowsName = "rows";
inline constexpr const char* kFilesName = "files";
inline constexpr const char* kClassesName = "classes";
inline constexpr const char* kColumnsName = "label_columns";
inline constexpr const char* kFormatAttribute = "chunkhit_format";

using ImageDimensions = std::array<hsize_t, 4>;

/// Gives the dimensions of `count` samples.
[[nodiscard]] ImageDimensions image_dimensions(const SampleShape& sample, hsize_t count);

/// Creates `/images` without samples.
[[nodiscard]] Hdf5Handle create_images(const Hdf5Check& check, hid_t file, const PartSpec& spec);

/// Asks the library where the chunk with `chunk.first_sample` lies: sets offset, stored bytes and `filtered`.
/// The library takes longer the further back the chunk is (it walks over all chunks before it).
void look_up_chunk(const Hdf5Check& check, hid_t images, const PartSpec& spec, StoredChunk& chunk);

}  // namespace chunkhit
