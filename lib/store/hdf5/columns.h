// Columns of variable-length text, as h5py and AnnData write them.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "store/hdf5/handle.h"
#include "store/part.h"

namespace chunkhit {

// HDF5's name of a number's type, in memory and, being little-endian, in the file.
inline hid_t hdf5_type(std::uint8_t) { return H5T_NATIVE_UINT8; }
inline hid_t hdf5_type(std::int64_t) { return H5T_NATIVE_INT64; }
inline hid_t hdf5_type(std::uint64_t) { return H5T_NATIVE_UINT64; }
inline hid_t hdf5_type(float) { return H5T_NATIVE_FLOAT; }
inline hid_t hdf5_type(double) { return H5T_NATIVE_DOUBLE; }

/// Writes numbers of an HDF5 type as a contiguous dataset.
void write_column(const Hdf5Check& check, hid_t file, const char* name, hid_t type,
                  std::span<const hsize_t> dimensions, const void* numbers);

/// Writes an array of numbers as a contiguous dataset.
template <class Number>
void write_column(const Hdf5Check& check, hid_t file, const char* name, std::span<const hsize_t> dimensions,
                  const std::vector<Number>& numbers) {
  write_column(check, file, name, hdf5_type(Number{}), dimensions, numbers.data());
}

/// Writes names as fixed-length UTF-8 text, as long as the longest and filled with zero bytes.
void write_text_column(const Hdf5Check& check, hid_t file, const char* name, const Names& names);

/// A dataset of numbers of which memory for all of it may be taken: its storage can hold as many.
struct Hdf5Column {
  Hdf5Handle dataset;
  std::vector<hsize_t> dimensions;
  bool is_floating = false;
  [[nodiscard]] std::uint64_t count() const;
};

/// Whether the file has an object of that path from its root.
[[nodiscard]] bool has_object(const Hdf5Check& check, hid_t file, const char* name);

/// Opens a group or a dataset, by its path from the root, that lies in this very file; a link to elsewhere on
/// the way is refused.
[[nodiscard]] Hdf5Handle open_object(const Hdf5Check& check, hid_t file, const char* name);

/// Opens a dataset, by its path from the root, that lies in this very file; a link to elsewhere on the way is
/// refused.
[[nodiscard]] Hdf5Handle open_dataset(const Hdf5Check& check, hid_t file, const char* name);

/// Asks for the dimensions of a dataset.
[[nodiscard]] std::vector<hsize_t> dataset_dimensions(const Hdf5Check& check, hid_t dataset);

/// Opens a dataset of whole or floating numbers; refuses other types, filters that need a plug-in, links and
/// other files' data.
[[nodiscard]] Hdf5Column open_column(const Hdf5Check& check, hid_t file, const char* name);

/// Refuses data of other files, filters that would load a plug-in, dimensions whose items of `item_bytes`
/// could not come from what is stored, and lists of which chunks were never written and have no fill value.
void check_column_storage(const Hdf5Check& check, hid_t dataset, std::span<const hsize_t> dimensions,
                          std::uint64_t item_bytes);

/// Reads all numbers of a column as an HDF5 type into room for `column.count()` of them.
void read_numbers(const Hdf5Check& check, const Hdf5Column& column, hid_t type, void* numbers);

/// Reads all numbers of a column, converted.
template <class Number>
[[nodiscard]] std::vector<Number> read_column(const Hdf5Check& check, const Hdf5Column& column) {
  std::vector<Number> numbers(column.count());
  if (!numbers.empty()) read_numbers(check, column, hdf5_type(Number{}), numbers.data());
  return numbers;
}

/// Reads fixed-length text; zero bytes at its end do not count.
[[nodiscard]] Names read_text_column(const Hdf5Check& check, hid_t file, const char* name);

inline constexpr H5Z_filter_t kLzfFilter = 32000;

/// Makes HDF5 undo LZF in this process from now on, unless h5py or a plug-in already does; it writes none.
void register_lzf(const Hdf5Check& check);

/// Whether register_lzf was called in this process.
[[nodiscard]] bool undoes_lzf();

/// Writes names as variable-length UTF-8; a zero byte ends a name.
void write_variable_texts(const Hdf5Check& check, hid_t file, const std::string& path, const Names& names);

/// Reads names: text of either kind, or whole numbers as decimal digits. Refuses other types, and texts that
/// are more than the file has bytes.
[[nodiscard]] Names read_names(const Hdf5Check& check, hid_t file, const std::string& path);

}  // namespace chunkhit
