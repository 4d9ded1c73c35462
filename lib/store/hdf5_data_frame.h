// Groups and tables of an AnnData file. Layout: schemas/matrix-hdf5.md, after AnnData's own description:
// https://anndata.readthedocs.io/en/stable/fileformat-prose.html
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <string>
#include <vector>

#include "store/hdf5_columns.h"
#include "store/hdf5_handle.h"
#include "store/part.h"

namespace chunkhit {

/// Marks an object with AnnData's name of its kind.
void write_encoding(const Hdf5Check& check, hid_t object, const char* type, const char* version);

/// Creates a group of a kind.
Hdf5Handle create_group(const Hdf5Check& check, hid_t file, const std::string& path, const char* type,
                        const char* version);

/// Whether there is a group, and not a link, of that path.
[[nodiscard]] bool has_group(const Hdf5Check& check, hid_t file, const std::string& path);

/// Names for label columns as columns of /obs: their own, or label_0, label_1, ... where those cannot be
/// names of HDF5 objects or are taken.
[[nodiscard]] std::vector<std::string> label_column_names(const std::vector<std::string>& labels);

/// Writes a table beside a matrix, column by column: /obs or /var.
class DataFrameWriter {
 public:
  /// Creates the table with the names of its rows.
  DataFrameWriter(const Hdf5Check& check, hid_t file, std::string path, const Names& row_names);
  template <class Number>
  void add(const std::string& name, const std::vector<Number>& numbers) {
    add(name, hdf5_type(Number{}), numbers.size(), numbers.data());
  }
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

/// Reads the names of a table's rows; none where there is no such table or it is of another form.
[[nodiscard]] Names read_row_names(const Hdf5Check& check, hid_t file, const std::string& path);

}  // namespace chunkhit
