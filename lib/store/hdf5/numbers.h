// Columns of numbers and texts in HDF5 files.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "store/hdf5/dataset.h"
#include "store/hdf5/handle.h"
#include "types/rating_block.h"
#include "types/text_list.h"

namespace chunkhit {

/// Creates a contiguous dataset of an HDF5 type.
[[nodiscard]] Hdf5Handle create_column(const Hdf5Check& check, hid_t file, const char* name, hid_t type,
                                       std::span<const hsize_t> dimensions);

/// Writes numbers of an HDF5 type as a contiguous dataset.
void write_column(const Hdf5Check& check, hid_t file, const char* name, hid_t type,
                  std::span<const hsize_t> dimensions, const void* numbers);

/// Writes an array of numbers as a contiguous dataset.
template <class Number>
void write_column(const Hdf5Check& check, hid_t file, const char* name, std::span<const hsize_t> dimensions,
                  const std::vector<Number>& numbers) {
  write_column(check, file, name, hdf5_type(Number{}), dimensions, numbers.data());
}

/// A dataset of numbers of which memory for all of it may be taken: its storage can hold as many.
struct Hdf5Column {
  Hdf5Handle dataset;
  std::vector<hsize_t> dimensions;
  bool is_floating = false;
  std::size_t item_bytes = 0;
  [[nodiscard]] std::uint64_t count() const;
};

/// Opens a dataset of whole or floating numbers; refuses other types, filters that need a plug-in, links and
/// other files' data.
[[nodiscard]] Hdf5Column open_column(const Hdf5Check& check, hid_t file, const std::string& path,
                                     hid_t access = H5P_DEFAULT);

/// Reads all numbers of a column as an HDF5 type into room for `column.count()` of them.
void read_numbers(const Hdf5Check& check, const Hdf5Column& column, hid_t type, void* numbers);

/// Reads all numbers of a column, converted.
template <class Number>
[[nodiscard]] std::vector<Number> read_column(const Hdf5Check& check, const Hdf5Column& column) {
  std::vector<Number> numbers(column.count());
  if (!numbers.empty()) read_numbers(check, column, hdf5_type(Number{}), numbers.data());
  return numbers;
}

/// Reads a dataset of one or two dimensions, the last one fastest, such that each chunk is decoded once.
class Hdf5Numbers {
 public:
  Hdf5Numbers(const Hdf5Check& check, hid_t file, const std::string& path);
  [[nodiscard]] const std::vector<hsize_t>& dimensions() const { return column_.dimensions; }
  [[nodiscard]] std::uint64_t count() const { return column_.count(); }
  [[nodiscard]] bool is_floating() const { return column_.is_floating; }
  /// Numbers of a row; 1 of a list.
  [[nodiscard]] std::uint64_t width() const { return dimensions().size() == 1 ? 1 : dimensions()[1]; }
  /// Bytes of the chunks that are held while numbers are read.
  [[nodiscard]] std::uint64_t chunk_bytes() const { return chunk_bytes_; }
  /// Fills with the next numbers; negative ones and those beyond 63 bits stay outside of any valid index.
  /// Throws bad_data where the dataset does not hold whole numbers.
  void read(std::span<std::int64_t> numbers);
  void read(std::span<float> numbers);
  [[nodiscard]] const RoundedValues& rounded() const { return rounded_; }

 private:
  void read_as(hid_t type, std::size_t item_bytes, std::uint64_t count, void* numbers);
  void read_box(hid_t type, std::uint64_t rows, std::uint64_t columns, void* numbers);

  Hdf5Check check_;
  std::string path_;
  Hdf5Column column_;
  std::uint64_t position_ = 0;  // of the next number
  std::uint64_t chunk_bytes_ = 0;
  std::vector<double> wide_;
  RoundedValues rounded_;
};

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
