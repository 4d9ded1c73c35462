// An array of bytes in an HDF5 file that someone else made. schemas/images-hdf5.md, "Other files".
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "store/hdf5/handle.h"

namespace chunkhit {

/// How an array lies in its file.
struct Hdf5Array {
  std::string name;                       ///< as messages call it: "/train/x"
  std::vector<std::uint64_t> dimensions;  ///< at least one; samples first
  std::vector<std::uint64_t> chunk;       ///< sides of a chunk; none where the array lies in one piece
  std::vector<std::string_view> filters;  ///< deflate, zstd, shuffle or fletcher32, in the order of encoding
  bool filters_partial_chunks = true;
  std::uint8_t fill_value = 0;
  std::uint64_t offset = 0;  ///< of an array in one piece
  bool is_written = true;    ///< false: all of it is the fill value
};

/// Asks how an array lies. Refuses what does not hold unsigned bytes, other files' data, and filters that
/// this library does not know, by their names.
[[nodiscard]] Hdf5Array describe_array(const Hdf5Check& check, hid_t dataset, const std::string& name);

/// Names the filter that compresses an array's chunks: "deflate", "none", a number where it has no name.
[[nodiscard]] std::string codec_name(const Hdf5Check& check, hid_t dataset);

}  // namespace chunkhit
