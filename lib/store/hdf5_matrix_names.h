// Names of objects and attributes in an HDF5 part of matrices. Layout: schemas/matrix-hdf5.md.
#pragma once

#include <cstdint>

namespace chunkhit {

inline constexpr const char* kXName = "X";
inline constexpr const char* kHeldOutName = "layers/held_out";
inline constexpr const char* kDenseName = "matrix";
inline constexpr const char* kDenseHeldOutName = "held_out";
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

}  // namespace chunkhit
