// Matrices in HDF5 files of other programs: AnnData (.h5ad), 10x Genomics (.h5), and any group with data,
// indices and indptr. Read from front to back, never held.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "store/part.h"
#include "types/rating_block.h"

namespace chunkhit {

/// How a matrix lies: compressed rows, compressed columns, or every cell, row by row.
enum class CsrStorage : std::uint8_t { csr, csc, dense };

/// What a file says of a matrix. Rows are observations (AnnData) or barcodes (10x): what users are here.
struct CsrFacts {
  std::string place;  ///< of the matrix in the file: "/X"
  CsrStorage storage = CsrStorage::csr;
  std::uint64_t row_count = 0;
  std::uint64_t column_count = 0;  ///< UINT64_MAX where the file does not say
  std::uint64_t entry_count = 0;   ///< of a dense matrix: its cells
  Names row_names;                 ///< as many as rows, or none
  Names column_names;
  std::vector<std::string> notices;  ///< what was assumed
};

/// Reads one matrix, in a child process (store/hdf5_isolated.h), which lives as long. One thread at a time.
class Hdf5Csr {
 public:
  /// Finds the matrix at `place` ("layers/counts", "raw/X", "matrix"); where that is empty /X, 10x's group or
  /// the only group that has one. Throws bad_data for what is none, what only a plug-in of HDF5 could decode,
  /// what lies in other files, and what the library crashes over; try_again where there can be no child.
  /// Throws usage where its names, or the chunks that must be held, do not fit into `memory_bytes`.
  Hdf5Csr(const std::string& path, const std::string& place, std::uint64_t memory_bytes = UINT64_MAX);
  ~Hdf5Csr();
  Hdf5Csr(const Hdf5Csr&) = delete;
  Hdf5Csr& operator=(const Hdf5Csr&) = delete;
  [[nodiscard]] const CsrFacts& facts() const;
  /// Moves the names out.
  [[nodiscard]] Names take_row_names();
  [[nodiscard]] Names take_column_names();
  /// Fills with the next numbers of each array; the caller asks for no more than there are (indptr has one
  /// more than rows, or columns), and checks them. Throws bad_data.
  void read_indptr(std::span<std::int64_t> numbers);
  void read_indices(std::span<std::int64_t> numbers);
  void read_values(std::span<float> numbers);
  /// Values so far that no 32-bit float is equal to: the nearest one was given.
  [[nodiscard]] const RoundedValues& rounded() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace chunkhit
