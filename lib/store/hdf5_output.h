// HDF5 files that are being written.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <string>

#include "base/file.h"
#include "store/hdf5_handle.h"

namespace chunkhit {

/// Keeps the library from writing a file once more when the process ends, after that could not be done
/// before; to be called before anything else of the library is.
void leave_files_alone_at_exit();

/// Creates a file that HDF5 1.8 reads and that has equal bytes for equal contents, with its metadata in
/// blocks of `metadata_block_bytes`.
[[nodiscard]] Hdf5Handle create_hdf5_file(const Hdf5Check& check, const std::string& path,
                                          std::uint64_t metadata_block_bytes);

/// Where the file ends, with what the library has not written yet.
[[nodiscard]] std::uint64_t end_of_hdf5_file(const Hdf5Check& check, hid_t file);

/// Takes disk space for `bytes` behind `end`, so that a full disk shows here and not where HDF5 hides it;
/// throws cannot_write. What is not used is given back by `give_back_reserved`.
void reserve(const PendingFile& file, std::uint64_t end, std::uint64_t bytes);

/// Sets the size of a closed file to what HDF5 wrote.
void give_back_reserved(const PendingFile& file, std::uint64_t file_bytes);

}  // namespace chunkhit
