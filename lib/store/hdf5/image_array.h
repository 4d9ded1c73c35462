// An array of bytes in an external HDF5 file, and how it becomes chunks of samples. schemas/images-hdf5.md,
// "Other files".
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"
#include "store/hdf5/handle.h"
#include "store/part.h"

namespace chunkhit {

/// How an array is stored in its file.
struct Hdf5Array {
  std::string name;                       ///< as messages call it: "/train/x"
  std::vector<std::uint64_t> dimensions;  ///< at least one; samples first
  std::vector<std::uint64_t> chunk;       ///< sides of a chunk; none where the array is stored in one piece
  std::vector<H5Z_filter_t> filters;      ///< deflate, zstd, shuffle or fletcher32, in the order of encoding
  bool filters_partial_chunks = true;
  std::uint64_t offset = 0;  ///< of an array in one piece
  bool is_written = true;    ///< false: all of it is the fill value
};

/// Asks how an array is stored. Refuses what does not hold unsigned bytes, other files' data, and filters
/// other than those above, by their names.
[[nodiscard]] Hdf5Array describe_array(const Hdf5Check& check, hid_t dataset, const std::string& name);

/// Fills chunks, pieces, codec and chunk samples for an array whose sample shape is in `contents.spec`. Where
/// each chunk of the file holds whole samples and has at most one codec, they are read from their positions;
/// all else is read by the HDF5 library, some rows of its chunks at a time.
void lay_out_chunks(Hdf5Source& source, const InputFile& input, hid_t dataset, const Hdf5Array& array,
                    PartContents& contents);

}  // namespace chunkhit
