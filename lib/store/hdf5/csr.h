// Matrices in HDF5 files of other programs: AnnData (.h5ad), and any group with data,
// indices and indptr. Read from front to back, never held.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "store/hdf5/csr_numbers.h"
#include "store/hdf5/handle.h"
#include "store/part.h"
#include "types/rating_block.h"

namespace chunkhit {

/// How a matrix lies: compressed rows, compressed columns, or every cell, row by row.
enum class CsrStorage : std::uint8_t { csr, csc, dense };

/// What a file says of a matrix. Rows are AnnData's observations: what users are here.
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

/// The kinds of files that are distinguished.
enum class CsrFileKind : std::uint8_t {
  anndata,  ///< /X, /layers/..., /raw/X, with /obs and /var
  bare,     ///< a group with data, indices and indptr
};

/// What is known before any number is read.
struct CsrLayout {
  std::string place;  ///< of the group, or of the dense dataset: "/X"
  CsrFileKind kind = CsrFileKind::bare;
  bool is_dense = false;
  std::string format;               ///< "csr", "csc", or nothing where the file does not say
  std::vector<std::int64_t> shape;  ///< as written: two sides, or none
};

/// Finds the matrix at `place`, or the one that is meant where that is empty; throws bad_data, with what
/// there is instead.
[[nodiscard]] CsrLayout find_csr_layout(const Hdf5Check& check, hid_t file, const std::string& place);

/// Reads the names of rows and columns, where the file has any, into `facts`, whose counts are set.
void read_axis_names(const Hdf5Check& check, hid_t file, const CsrLayout& layout, CsrFacts& facts);

/// Reads one matrix. One thread at a time; the HDF5 library may crash over a damaged file
/// (store/hdf5/external_check.h).
class Hdf5Csr {
 public:
  /// Finds the matrix at `place` ("layers/counts", "raw/X", "matrix"); where that is empty /X or the only
  /// group that has one. Throws bad_data for what is none, what only a plug-in of HDF5 could decode,
  /// and what lies in other files; usage where its names, or the chunks that must be held, do not fit into
  /// `memory_bytes`.
  Hdf5Csr(const std::string& path, const std::string& place, std::uint64_t memory_bytes = UINT64_MAX);
  [[nodiscard]] const CsrFacts& facts() const { return facts_; }
  /// Moves the names out.
  [[nodiscard]] Names take_row_names() { return std::move(facts_.row_names); }
  [[nodiscard]] Names take_column_names() { return std::move(facts_.column_names); }
  /// Fills with the next numbers of each array; the caller asks for no more than there are (indptr has one
  /// more than rows, or columns), and checks them. Throws bad_data.
  void read_indptr(std::span<std::int64_t> numbers) { indptr_->read(check_, numbers); }
  void read_indices(std::span<std::int64_t> numbers) { indices_->read(check_, numbers); }
  void read_values(std::span<float> numbers) { values_->read(check_, numbers); }
  /// Values so far that no 32-bit float is equal to: the nearest one was given.
  [[nodiscard]] const RoundedValues& rounded() const { return values_->rounded(); }

 private:
  void open_arrays(const std::string& place);
  void check_chunk_memory() const;
  void check_name_memory(std::uint64_t count, std::uint64_t text_bytes) const;
  void open_dense();
  void open_compressed(const CsrLayout& layout);
  void set_sides(const CsrLayout& layout, std::uint64_t outer_count);

  InputFile input_;
  Hdf5Check check_;
  Hdf5Source source_;
  std::uint64_t memory_bytes_;
  CsrFacts facts_;
  std::optional<Hdf5Numbers> indptr_;
  std::optional<Hdf5Numbers> indices_;
  std::optional<Hdf5Numbers> values_;
};

}  // namespace chunkhit
