// External HDF5 files of images, and whether one holds a matrix. schemas/images-hdf5.md, "Other files".
#pragma once

#include <hdf5.h>

#include <cstdint>

#include "base/file.h"
#include "store/hdf5/handle.h"
#include "store/part.h"

namespace chunkhit {

/// More samples than this are more likely a damaged number.
inline constexpr std::uint64_t kMaxExternalSamples = 1 << 26;

/// Reads a file that is no part of ours: what it lacks is made up, and its chunks carry no hashes.
[[nodiscard]] PartContents read_external_file(Hdf5Source& source, const InputFile& input,
                                              const Hdf5Names& names);

/// Reads the labels of `sample_count` samples: one dimension of whole numbers (or two with one column) as
/// class ids, all else as numbers. Where the name is empty, all are -1.
[[nodiscard]] Labels read_external_labels(const Hdf5Source& source, const Hdf5Names& names,
                                          std::uint64_t sample_count, PartSpec& spec);

/// Whether a file has no images, but a matrix as our parts and AnnData files have it.
[[nodiscard]] bool holds_matrix(const Hdf5Check& check, hid_t file);

/// Refuses a part of ours, which has `format_attribute`, with damaged bytes behind its HDF5 end. One that
/// another program changed ends there: the HDF5 library cuts it off.
void refuse_damaged_index(const Hdf5Source& source, const InputFile& input, const char* format_attribute);

}  // namespace chunkhit
