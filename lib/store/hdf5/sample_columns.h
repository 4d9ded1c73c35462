// What an HDF5 part of images says beside their pixels. Layout: schemas/images-hdf5.md.
#pragma once

#include <hdf5.h>

#include "store/hdf5/handle.h"
#include "store/part.h"

namespace chunkhit {

/// Writes the attributes of the root, and those of `images` that are known before the samples.
void write_part_attributes(const Hdf5Check& check, hid_t file, hid_t images, const PartSpec& spec);

/// Writes labels, rows, files and names, and the statistics of the pixels.
void write_sample_columns(const Hdf5Check& check, hid_t file, hid_t images, const PartSpec& spec,
                          const PartSamples& samples);

/// Compares what other programs read of these with what was to be written; refuses what differs.
void check_sample_columns(const Hdf5Check& check, hid_t file, hid_t images, const PartSpec& spec,
                          const PartSamples& samples);

}  // namespace chunkhit
