// The names in an HDF5 part of matrices, and the arrays of one that is being written. Layout:
// schemas/matrix-hdf5.md.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <memory>
#include <string>

#include "chunk/row_block.h"
#include "store/hdf5/output.h"

namespace chunkhit {

inline constexpr const char* kXName = "X";
inline constexpr const char* kHeldOutName = "layers/held_out";
inline constexpr const char* kTimesName = "layers/times";
inline constexpr const char* kHeldOutTimesName = "layers/held_out_times";
inline constexpr const char* kTiesName = "layers/ties";
inline constexpr const char* kHeldOutTiesName = "layers/held_out_ties";
inline constexpr const char* kRowName = "obs/row";
inline constexpr const char* kLabelName = "obs/label";
inline constexpr const char* kItemCountsName = "var/ratings";
inline constexpr const char* kLabelColumnsName = "uns/label_columns";

inline constexpr const char* kMatrixVersionAttribute = "chunkhit_matrix";
inline constexpr const char* kPackIdAttribute = "pack_id";
inline constexpr const char* kPartIndexAttribute = "part_index";
inline constexpr const char* kMatricesAttribute = "matrices";
inline constexpr const char* kValueTypeAttribute = "value_type";
inline constexpr const char* kScaleAttribute = "scale";
inline constexpr const char* kChunkRowsAttribute = "chunk_rows";
inline constexpr std::uint64_t kMatrixVersion = 1;
inline constexpr std::uint64_t kTimedMatrixVersion = 2;      ///< with times
inline constexpr std::uint64_t kRepeatingMatrixVersion = 3;  ///< with times, and columns that repeat in a row

[[nodiscard]] constexpr std::uint64_t version_of(const MatrixShape& shape) {
  if (shape.has_repeats) return kRepeatingMatrixVersion;
  return shape.has_times ? kTimedMatrixVersion : kMatrixVersion;
}

/// Writes one matrix row by row.
class MatrixOutput {
 public:
  virtual ~MatrixOutput() = default;
  /// Appends rows that were checked to be below the shape's columns.
  virtual void append(const CsrView& rows) = 0;
  virtual void finish() = 0;
  /// Throws cannot_write unless a file that was opened again has what was appended.
  virtual void check_written(hid_t file) const = 0;
  [[nodiscard]] virtual std::uint64_t chunk_count() const = 0;
  [[nodiscard]] virtual std::uint64_t stored_bytes() const = 0;
};

/// Where and how the arrays are written.
struct MatrixTarget {
  Hdf5Output& output;
  std::string path;
  MatrixShape shape;
  int deflate_level = 4;
  std::string times_path{};  ///< CSR: group of the times, where the shape has some
  std::string ties_path{};   ///< CSR: group of the ties, made once one is not 0
};

/// Starts a CSR group; its ratings are the values themselves. Times and ties are other groups, which share
/// its indices and indptr.
[[nodiscard]] std::unique_ptr<MatrixOutput> start_csr_group(const MatrixTarget& target);

}  // namespace chunkhit
