// Rows → a part of matrices, in a shard or in HDF5.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "pack/row_pipeline.h"
#include "store/hdf5_matrix.h"
#include "store/part.h"

namespace chunkhit {

/// Writes a part aside. One thread at a time.
class MatrixPartWriter {
 public:
  virtual ~MatrixPartWriter() = default;
  virtual void append(const RowPiece& piece) = 0;
  /// Ends a part; it exists only once its file is published.
  [[nodiscard]] virtual CompletePart complete(const PartSamples& samples) = 0;
};

/// Starts a shard; its pieces are row blocks.
[[nodiscard]] std::unique_ptr<MatrixPartWriter> create_matrix_shard(const std::string& path,
                                                                    const PartSpec& spec);

/// Starts an HDF5 part.
[[nodiscard]] std::unique_ptr<MatrixPartWriter> create_matrix_hdf5(const std::string& path,
                                                                   const PartSpec& spec,
                                                                   MatrixHdf5Options options);

}  // namespace chunkhit
