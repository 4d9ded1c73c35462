// Where the arrays and names of a matrix lie in an HDF5 file of another program.
#pragma once

#include <hdf5.h>

#include <string>
#include <vector>

#include "store/hdf5/csr.h"
#include "store/hdf5/handle.h"

namespace chunkhit {

/// The kinds of files that are distinguished.
enum class CsrFileKind : std::uint8_t {
  anndata,  ///< /X, /layers/..., /raw/X, with /obs and /var
  tenx,     ///< a group with barcodes: CSC of features × barcodes, which is CSR of barcodes × features
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

}  // namespace chunkhit
