// Opens an external HDF5 file in a program of its own first: the HDF5 library crashes over some damaged
// files.
#pragma once

#include <optional>
#include <string>

#include "chunkhit/pack_info.h"

namespace chunkhit {

/// What will be read of an external file.
struct ExternalUse {
  Hdf5Names names = {};  ///< of images and labels
  /// Where a matrix is, which is read instead: "X", "layers/counts"; empty: the only one. Not set: images, or
  /// the matrix of a file that has none.
  std::optional<std::string> matrix = {};
};

/// Lets `pack-verify --structure` open a file where that command is installed: beside this library or
/// program, or on PATH. The program is executed (posix_spawn): no copy of this process runs, no handler is
/// called. A file that passed is not opened again until it changes. Throws bad_data where it crashes, does
/// not end, or asks for more memory than such a file needs, and try_again where it was killed. What it
/// says otherwise is left to the reader of the file.
void check_external_file(const std::string& path, const ExternalUse& use);

/// Makes this process the one that checks: limits its time and memory to what such a file needs, and opens
/// the file: all of it but pixels and numbers is read. Throws what opening throws; aborts where the memory
/// does not suffice.
void open_within_limits(const std::string& path, const ExternalUse& use);

}  // namespace chunkhit
