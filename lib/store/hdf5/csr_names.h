// Names of rows and columns in HDF5 files of other programs, and texts of their attributes.
#pragma once

#include <hdf5.h>

#include <string>

#include "store/hdf5/handle.h"
#include "store/part.h"

namespace chunkhit {

/// Reads an attribute that is one text, of fixed or variable length; nothing where there is none.
[[nodiscard]] std::string read_any_text_attribute(const Hdf5Check& check, hid_t object, const char* name);

/// Whether the object of that path (from the root, "/X") is a group; false for what is not there.
[[nodiscard]] bool is_group(const Hdf5Check& check, hid_t file, const std::string& place);

/// Reads texts of fixed or variable length, whole numbers as digits, or AnnData's categories, at a path from
/// the root; throws bad_data for other things, and unless there are `expected` of them.
[[nodiscard]] Names read_csr_names(const Hdf5Check& check, hid_t file, const std::string& place,
                                   std::uint64_t expected);

/// Reads the index of an AnnData table (/obs, /var): of a group, or of an array of records as AnnData wrote
/// before 0.7. None where the table has no index.
[[nodiscard]] Names read_table_index(const Hdf5Check& check, hid_t file, const std::string& place,
                                     std::uint64_t expected);

}  // namespace chunkhit
