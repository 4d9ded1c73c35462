// Datasets and groups of HDF5 files: found, opened, and checked before anything is read from them; their
// filters as codecs.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/hdf5/handle.h"

namespace chunkhit {

inline constexpr H5Z_filter_t kLzfFilter = 32000;
inline constexpr H5Z_filter_t kZstdFilter = 32015;

// HDF5's name of a number's type, in memory and, being little-endian, in the file.
inline hid_t hdf5_type(std::uint8_t) { return H5T_NATIVE_UINT8; }
inline hid_t hdf5_type(std::uint32_t) { return H5T_NATIVE_UINT32; }
inline hid_t hdf5_type(std::int64_t) { return H5T_NATIVE_INT64; }
inline hid_t hdf5_type(std::uint64_t) { return H5T_NATIVE_UINT64; }
inline hid_t hdf5_type(float) { return H5T_NATIVE_FLOAT; }
inline hid_t hdf5_type(double) { return H5T_NATIVE_DOUBLE; }

/// Returns the name of a filter ("deflate"); empty if it is unknown here.
[[nodiscard]] std::string_view filter_name(H5Z_filter_t filter);

/// The same with its number, for messages: "lzf (32000)".
[[nodiscard]] std::string filter_text(H5Z_filter_t filter);

/// A path from the file's root with its slash: "/X". All functions take paths with and without it.
[[nodiscard]] std::string hdf5_path(const std::string& path);

/// Whether the file has an object of that path.
[[nodiscard]] bool has_object(const Hdf5Check& check, hid_t file, const std::string& path);

/// Whether there is a group, and not a link, of that path.
[[nodiscard]] bool has_group(const Hdf5Check& check, hid_t file, const std::string& path);

/// Lists the names in a group.
[[nodiscard]] std::vector<std::string> child_names(const Hdf5Check& check, hid_t file,
                                                   const std::string& group);

/// Throws `what`, the paths below the nearest group above `path`, and `advice`.
[[noreturn]] void refuse_missing(const Hdf5Check& check, hid_t file, const std::string& what,
                                 const std::string& path, const std::string& advice = "");

/// Opens a group or a dataset of this file; soft and external links on the path are an error.
[[nodiscard]] Hdf5Handle open_object(const Hdf5Check& check, hid_t file, const std::string& path);

/// Opens a dataset in the same way.
[[nodiscard]] Hdf5Handle open_dataset(const Hdf5Check& check, hid_t file, const std::string& path,
                                      hid_t access = H5P_DEFAULT);

/// Asks for the dimensions of a dataset.
[[nodiscard]] std::vector<hsize_t> dataset_dimensions(const Hdf5Check& check, hid_t dataset);

/// Returns the sides of a dataset's chunks, one per dimension; empty if it is not chunked.
[[nodiscard]] std::vector<hsize_t> chunk_sides(const Hdf5Check& check, hid_t dataset);

/// Counts the chunks that were written.
[[nodiscard]] std::uint64_t written_chunks(const Hdf5Check& check, hid_t dataset);

/// Creates a dataspace in memory.
[[nodiscard]] Hdf5Handle make_space(const Hdf5Check& check, std::span<const hsize_t> dimensions);

/// Makes the properties of a dataset that records no times.
[[nodiscard]] Hdf5Handle make_creation_list(const Hdf5Check& check);

/// Creates a dataset.
[[nodiscard]] Hdf5Handle create_dataset(const Hdf5Check& check, hid_t file, const std::string& path,
                                        hid_t type, const Hdf5Handle& space, const Hdf5Handle& list);

/// Selects a box of a dataset.
[[nodiscard]] Hdf5Handle select_box(const Hdf5Check& check, hid_t dataset, std::span<const hsize_t> first,
                                    std::span<const hsize_t> sides);

/// Refuses data of other files, filters that would load a plug-in (with what to do about it), dimensions
/// whose items of `item_bytes` could not come from what is stored, and lists of which chunks were never
/// written and have no fill value.
void check_storage(const Hdf5Check& check, hid_t dataset, std::span<const hsize_t> dimensions,
                   std::uint64_t item_bytes, const std::string& path);

/// Returns the codec of an array's chunks: "deflate", "none", or a number for an unknown filter.
[[nodiscard]] std::string codec_name(const Hdf5Check& check, hid_t dataset);

/// Makes HDF5 undo LZF in this process from now on, unless h5py or a plug-in already does; it writes none.
void register_lzf(const Hdf5Check& check);

}  // namespace chunkhit
