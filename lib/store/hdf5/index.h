// The index and the trailer behind the HDF5 end of file of our own parts: with them a part is read without
// the HDF5 library. Layout: schemas/images-hdf5.md, "Index and trailer".
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/file.h"
#include "store/part.h"

namespace chunkhit {

/// The version of the page, by whether samples have hashes.
[[nodiscard]] constexpr std::uint32_t hdf5_format(bool hashes_samples) { return hashes_samples ? 3 : 2; }

/// Bytes of a trailer.
inline constexpr std::uint64_t kHdf5TrailerBytes = 64;

/// Appends an index and a trailer of this version and kind to a finished and closed HDF5 file of these
/// chunks; parts of matrices have neither chunks nor an index, only the trailer. Throws cannot_write.
void append_hdf5_index(PendingFile& file, std::uint32_t version, SampleKind kind,
                       const std::vector<StoredChunk>& chunks, Bytes index);

/// Reads the trailer; nothing where the file has none, or its HDF5 file was changed since. Throws bad_data
/// when it is damaged or of another version.
[[nodiscard]] std::optional<Hdf5Trailer> read_hdf5_trailer(const InputFile& file);

/// Compares the hash of the HDF5 file of a part without chunks; throws bad_data when it differs.
void check_hdf5_hash(const InputFile& file, const Hdf5Trailer& trailer);

}  // namespace chunkhit
