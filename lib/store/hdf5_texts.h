// Columns of variable-length text, as h5py and AnnData write them.
#pragma once

#include <hdf5.h>

#include <string>

#include "store/hdf5_handle.h"
#include "store/part.h"

namespace chunkhit {

/// Writes names as variable-length UTF-8; a zero byte ends a name.
void write_variable_texts(const Hdf5Check& check, hid_t file, const std::string& path, const Names& names);

/// Reads names: text of either kind, or whole numbers as decimal digits. Refuses other types, and texts that
/// are more than the file has bytes.
[[nodiscard]] Names read_names(const Hdf5Check& check, hid_t file, const std::string& path);

}  // namespace chunkhit
