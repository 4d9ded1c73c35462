// Lists of texts in HDF5 files, of fixed and of variable length, as h5py and AnnData write them.
#pragma once

#include <hdf5.h>

#include <string>

#include "store/hdf5/handle.h"
#include "types/text_list.h"

namespace chunkhit {

/// Writes names as fixed-length UTF-8 text, as long as the longest and filled with zero bytes.
void write_text_column(const Hdf5Check& check, hid_t file, const char* name, const TextList& names);

/// Reads fixed-length text; zero bytes at its end do not count.
[[nodiscard]] TextList read_text_column(const Hdf5Check& check, hid_t file, const std::string& path);

/// Creates a type of variable-length text.
[[nodiscard]] Hdf5Handle variable_text_type(const Hdf5Check& check, H5T_cset_t encoding);

/// Writes names as variable-length UTF-8; a zero byte ends a name.
void write_variable_texts(const Hdf5Check& check, hid_t file, const std::string& path, const TextList& names);

/// Reads names: text of either kind, or whole numbers as decimal digits. Refuses other types, and texts that
/// are more than the file has bytes.
[[nodiscard]] TextList read_names(const Hdf5Check& check, hid_t file, const std::string& path);

}  // namespace chunkhit
