// Matrices in HDF5: AnnData (.h5ad), after its own description, 10x Genomics' Cell Ranger (.h5), and any
// group with data, indices and indptr. Read from front to back, never held.
// https://www.10xgenomics.com/support/software/cell-ranger/latest/analysis/outputs/cr-outputs-h5-matrices
// https://anndata.readthedocs.io/en/stable/fileformat-prose.html
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "store/hdf5/handle.h"
#include "store/hdf5/numbers.h"
#include "types/rating_block.h"
#include "types/text_list.h"

namespace chunkhit {

/// How a matrix is stored: compressed rows, compressed columns, or every cell, row by row.
enum class CsrStorage : std::uint8_t { csr, csc, dense };

/// What a file says of a matrix. Rows are AnnData's observations, or cells: what users are here.
struct CsrFacts {
  std::string path;  ///< path of the matrix in the file: "/X"
  CsrStorage storage = CsrStorage::csr;
  std::uint64_t row_count = 0;
  std::uint64_t column_count = 0;  ///< UINT64_MAX where the file does not say
  std::uint64_t entry_count = 0;   ///< entries, or cells of a dense matrix
  TextList row_names;              ///< one per row; empty: no names
  TextList column_names;
  bool is_cell_ranger = false;       ///< of 10x Genomics
  TextList column_types;             ///< types of the features, in files of 10x Genomics; empty: none
  std::vector<std::string> notices;  ///< what was assumed
};

/// Reads the index of an AnnData table (/obs, /var): of a group, or of an array of records as AnnData wrote
/// before 0.7. None where there is no such table, or it has no index; throws bad_data unless there are
/// `expected` of them.
[[nodiscard]] TextList read_table_index(const Hdf5Check& check, hid_t file, const std::string& path,
                                        std::uint64_t expected);

/// Reads one matrix. One thread at a time; the HDF5 library may crash over a damaged file
/// (store/hdf5/external_check.h).
class AnnDataMatrix {
 public:
  /// Finds the matrix at `path` ("layers/counts", "raw/X", "matrix"); where that is empty /X or the only
  /// group that has one; layers/NAME may also be the genome NAME of 10x Genomics. Throws bad_data for what is
  /// none, what only a plug-in of HDF5 could decode,
  /// and what is stored in other files; usage where the chunks that must be held do not fit into
  /// `memory_bytes`. `source` must outlive it.
  AnnDataMatrix(const Hdf5Source& source, const std::string& path, std::uint64_t memory_bytes = UINT64_MAX);
  /// Reads the names of rows and columns, where the file has any; usage where they do not fit into
  /// `memory_bytes`.
  void read_names();
  [[nodiscard]] const CsrFacts& facts() const { return facts_; }
  /// Moves the names out.
  [[nodiscard]] TextList take_row_names() { return std::move(facts_.row_names); }
  [[nodiscard]] TextList take_column_names() { return std::move(facts_.column_names); }
  /// Fills with the next numbers of each array; the caller asks for no more than there are (indptr has one
  /// more than rows, or columns), and checks them. Throws bad_data.
  void read_indptr(std::span<std::int64_t> numbers) { indptr_->read(numbers); }
  void read_indices(std::span<std::int64_t> numbers) { indices_->read(numbers); }
  void read_values(std::span<float> numbers) { values_->read(numbers); }
  /// Whether values are floating numbers in the file.
  [[nodiscard]] bool is_floating() const { return values_->is_floating(); }
  /// Values so far that no 32-bit float is equal to: the nearest one was given.
  [[nodiscard]] const RoundedValues& rounded() const { return values_->rounded(); }

 private:
  void open_dense();
  void open_compressed();
  void set_sides(const std::string& format, const std::vector<std::int64_t>& shape);
  void set_cell_sides(const std::vector<std::int64_t>& shape);
  void read_cell_names();
  [[nodiscard]] std::vector<std::int64_t> read_shape() const;
  void check_chunk_memory() const;
  void check_name_memory(std::uint64_t count, std::uint64_t text_bytes) const;

  const Hdf5Source& source_;
  std::uint64_t memory_bytes_;
  CsrFacts facts_;
  std::optional<Hdf5Numbers> indptr_;
  std::optional<Hdf5Numbers> indices_;
  std::optional<Hdf5Numbers> values_;
};

/// A matrix with its own file, and its names.
class AnnDataFile {
 public:
  AnnDataFile(const std::string& path, const std::string& matrix, std::uint64_t memory_bytes = UINT64_MAX)
      : source_(InputFile(path)), matrix_(source_, matrix, memory_bytes) {
    matrix_.read_names();
  }
  [[nodiscard]] AnnDataMatrix& matrix() { return matrix_; }

 private:
  Hdf5Source source_;
  AnnDataMatrix matrix_;
};

}  // namespace chunkhit
