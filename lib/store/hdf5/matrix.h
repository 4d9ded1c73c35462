// Matrices in HDF5: AnnData files, which anndata, scipy and h5py open as they are. Layout:
// schemas/matrix-hdf5.md.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/part.h"
#include "types/csr_rows.h"
#include "types/sample_column.h"

namespace chunkhit {

/// Ratings that one matrix of an AnnData part holds at most: its indptr has 32 bits, as its indices have.
inline constexpr std::uint64_t kMaxCsrEntries = INT32_MAX;

/// How a matrix part is written.
struct MatrixHdf5Options {
  int deflate_level = 4;  ///< 1..12; 0: stored raw
  /// Ratings of each item in the training matrix; empty: not written.
  std::vector<std::uint64_t> item_counts = {};
  std::vector<SampleColumn> item_columns = {};  ///< kept beside the items' ids
};

/// Writes a part of matrices aside. One thread at a time.
class MatrixHdf5Writer {
 public:
  /// Starts a part of row blocks, `spec.rows()`; throws cannot_write, bad_data for a spec that
  /// the layout cannot hold.
  MatrixHdf5Writer(const std::string& path, const PartSpec& spec, MatrixHdf5Options options = {});
  MatrixHdf5Writer(const MatrixHdf5Writer&) = delete;
  MatrixHdf5Writer& operator=(const MatrixHdf5Writer&) = delete;
  ~MatrixHdf5Writer();
  /// Appends rows; `held_out` has as many, and none where the part has one matrix.
  void append(const CsrView& x, const CsrView& held_out);
  /// Writes what stands beside the matrices, reads all of it back, and flushes it. The report's hash is that
  /// of the trailer; its chunks are those of /X/data and /X/indices.
  [[nodiscard]] CompletePart complete(const PartSamples& samples);
  /// Completes the part and publishes it.
  PartReport finish(const PartSamples& samples);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// All that an HDF5 file of matrices says, in memory. Values are ratings, not stored numbers.
struct Hdf5Matrix {
  std::uint64_t column_count = 0;
  CsrRows x;
  std::optional<CsrRows> held_out;
  PartSamples samples;                     ///< of an external file: row_ids = the row names, rows = 0, 1, ...
  std::string codec = "none";              ///< codec of the values, or of the cells
  std::vector<std::string> column_names;   ///< the items' own ids; as many as columns, or none
  std::optional<PartSpec> spec;            ///< of a part of ours; item_ids = column_names
  std::vector<std::uint64_t> item_counts;  ///< ratings per item, as written
};

/// Which array of an AnnData file is read.
struct Hdf5MatrixNames {
  std::string x = "X";  ///< "X", "layers/NAME", "raw/X"
};

/// Reads a part of ours, or the CSR, CSC or dense array of any AnnData file, over
/// which the HDF5 library may crash when it is damaged. Rows come sorted, and entries that are zero in a
/// dense array are left out; throws bad_data when anything does not fit, or where a row has a column twice.
[[nodiscard]] Hdf5Matrix read_matrix_hdf5(const InputFile& input, const Hdf5MatrixNames& names = {});

/// Opens parts of ours, or any AnnData files, as row blocks that are made in memory: HDF5's arrays have no
/// chunks of whole rows. Of parts of ours the hash of all bytes is compared before; others are opened after
/// store/hdf5/external_check.h. Throws as read_matrix_hdf5.
[[nodiscard]] std::vector<std::unique_ptr<ChunkReader>> open_matrices_hdf5(
    const std::vector<std::string>& paths);

/// Returns whether an HDF5 file holds a matrix (/X, /matrix) and no /images. An external
/// file is opened as by open_matrices_hdf5.
[[nodiscard]] bool is_matrix_hdf5(const std::string& path);

}  // namespace chunkhit
