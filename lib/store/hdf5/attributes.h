// Attributes of HDF5 objects; groups and tables of an AnnData file. Layout: schemas/matrix-hdf5.md, after
// AnnData's own description: https://anndata.readthedocs.io/en/stable/fileformat-prose.html
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <string>
#include <vector>

#include "store/hdf5/dataset.h"
#include "store/hdf5/handle.h"
#include "types/sample_column.h"
#include "types/text_list.h"

namespace chunkhit {

/// Whether an attribute is one value or a list of them.
enum class AttributeShape { scalar, array };

/// Writes `count` values of an HDF5 type.
void write_attribute(const Hdf5Check& check, hid_t object, const char* name, hid_t type, AttributeShape shape,
                     hsize_t count, const void* values);

/// Writes one number.
template <class Number>
void write_attribute(const Hdf5Check& check, hid_t object, const char* name, Number number) {
  write_attribute(check, object, name, hdf5_type(number), AttributeShape::scalar, 1, &number);
}

/// Writes an array of numbers.
template <class Number>
void write_attribute(const Hdf5Check& check, hid_t object, const char* name,
                     const std::vector<Number>& numbers) {
  write_attribute(check, object, name, hdf5_type(Number{}), AttributeShape::array, numbers.size(),
                  numbers.data());
}

/// Writes a text as variable-length UTF-8, which h5py gives as `str`.
void write_text_attribute(const Hdf5Check& check, hid_t object, const char* name, const std::string& text);

/// Writes a list of such texts.
void write_text_attribute(const Hdf5Check& check, hid_t object, const char* name,
                          const std::vector<std::string>& texts);

/// Returns the number of values of an attribute; 0 if it does not exist.
[[nodiscard]] std::size_t attribute_count(const Hdf5Check& check, hid_t object, const char* name);

/// Reads all values of an attribute as an HDF5 type; the caller has made room for `attribute_count` of them.
void read_attribute(const Hdf5Check& check, hid_t object, const char* name, hid_t type, void* values);

/// Reads one number or an array of them; empty if the attribute does not exist.
template <class Number>
[[nodiscard]] std::vector<Number> read_attribute(const Hdf5Check& check, hid_t object, const char* name) {
  std::vector<Number> numbers(attribute_count(check, object, name));
  if (!numbers.empty()) read_attribute(check, object, name, hdf5_type(Number{}), numbers.data());
  return numbers;
}

/// Reads one text of fixed or variable length; empty if the attribute does not exist.
[[nodiscard]] std::string read_text_attribute(const Hdf5Check& check, hid_t object, const char* name);

/// Marks an object with AnnData's name of its kind.
void write_encoding(const Hdf5Check& check, hid_t object, const char* type, const char* version);

/// Creates a group of a kind.
Hdf5Handle create_group(const Hdf5Check& check, hid_t file, const std::string& path, const char* type,
                        const char* version);

/// Names for label columns as columns of /obs: their own, or label_0, label_1, ... where those cannot be
/// names of HDF5 objects or are taken.
[[nodiscard]] std::vector<std::string> label_column_names(const std::vector<std::string>& labels);

/// Writes a table beside a matrix, column by column: /obs or /var.
class DataFrameWriter {
 public:
  /// Creates the table with the names of its rows.
  DataFrameWriter(const Hdf5Check& check, hid_t file, std::string path, const TextList& row_names);
  template <class Number>
  void add(const std::string& name, const std::vector<Number>& numbers) {
    add(name, hdf5_type(Number{}), numbers.size(), numbers.data());
  }
  void add(const std::string& name, const TextList& texts);
  /// Adds kept columns under names that are free, which it returns: their own, or column_0, column_1, ...
  /// where those cannot be names of HDF5 objects or are taken.
  [[nodiscard]] std::vector<std::string> add_kept(const std::vector<SampleColumn>& columns);
  /// Writes the names of the columns.
  void finish();

 private:
  void add(const std::string& name, hid_t type, std::uint64_t count, const void* numbers);

  const Hdf5Check& check_;
  hid_t file_;
  std::string path_;
  Hdf5Handle group_;
  std::vector<std::string> columns_;
};

}  // namespace chunkhit
