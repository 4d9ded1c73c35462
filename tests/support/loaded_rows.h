// What a sparse loader gave, and parts to read.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "base/half_float.h"
#include "chunkhit/sparse_loader.h"
#include "known_matrices.h"
#include "temporary_folder.h"

namespace chunkhit {

inline constexpr std::uint64_t kRows = 83;
inline constexpr SparseFormat kSparseFormats[] = {SparseFormat::dense_f32, SparseFormat::dense_f16,
                                                  SparseFormat::dense_u8, SparseFormat::csr};
inline constexpr Cache kCaches[] = {Cache::automatic, Cache::decoded, Cache::compressed, Cache::none};

inline std::string write_shard(const TemporaryFolder& folder, const MatrixShape& shape,
                               const std::string& filter = "zstd", std::size_t label_columns = 0) {
  const std::string path = folder.path("part.zst");
  write_known_matrices(path, known_matrix_spec(shape, filter, label_columns), kRows);
  return path;
}

/// The rating of a cell, 0 where there is none.
inline float known_cell(std::uint64_t row, std::uint64_t column, int matrix, const MatrixShape& shape) {
  return known_matrix(row, column) == matrix ? known_rating(row, column, shape) : 0;
}

/// A batch's matrix as dense floats, whatever its form.
inline std::vector<float> cells_of(const SparseMatrix& matrix, SparseFormat format, double scale) {
  std::vector<float> cells(matrix.row_count() * matrix.column_count());
  if (format == SparseFormat::dense_f32) std::copy_n(matrix.dense_f32().begin(), cells.size(), cells.begin());
  if (format == SparseFormat::dense_u8)
    std::transform(matrix.dense_u8().begin(), matrix.dense_u8().end(), cells.begin(),
                   [&](std::uint8_t stored) { return static_cast<float>(stored * scale); });
  if (format != SparseFormat::csr) return cells;
  const CsrBatch& csr = matrix.csr();
  EXPECT_EQ(csr.indptr.size(), matrix.row_count() + 1);
  for (std::size_t row = 0; row < matrix.row_count(); ++row)
    for (auto at = csr.indptr[row]; at < csr.indptr[row + 1]; ++at) {
      const auto entry = static_cast<std::size_t>(at);
      cells[row * matrix.column_count() + static_cast<std::size_t>(csr.indices[entry])] = csr.values[entry];
    }
  return cells;
}

inline void expect_known_times(const CsrBatch& csr, std::span<const std::uint64_t> rows,
                               const MatrixShape& shape) {
  ASSERT_EQ(csr.times.size(), shape.has_times ? csr.indices.size() : 0);
  for (std::size_t row = 0; row < rows.size() && shape.has_times; ++row)
    for (auto at = static_cast<std::size_t>(csr.indptr[row]);
         at < static_cast<std::size_t>(csr.indptr[row + 1]); ++at)
      ASSERT_EQ(csr.times[at], known_time(rows[row], static_cast<std::uint64_t>(csr.indices[at])));
}

inline void expect_known_cells(const SparseMatrix& matrix, std::span<const std::uint64_t> rows, int which,
                               SparseFormat format, const MatrixShape& shape) {
  ASSERT_EQ(matrix.row_count(), rows.size());
  const std::vector<float> cells = cells_of(matrix, format, shape.scale);
  for (std::size_t row = 0; row < rows.size(); ++row)
    for (std::uint64_t column = 0; column < shape.column_count; ++column) {
      const float expected = known_cell(rows[row], column, which, shape);
      const std::size_t cell = row * shape.column_count + column;
      if (format == SparseFormat::dense_f16)
        ASSERT_EQ(matrix.dense_f16()[cell], half_float(expected)) << rows[row] << " " << column;
      else
        ASSERT_EQ(cells[cell], expected) << rows[row] << " " << column;
    }
  if (format == SparseFormat::csr) expect_known_times(matrix.csr(), rows, shape);
}

}  // namespace chunkhit
