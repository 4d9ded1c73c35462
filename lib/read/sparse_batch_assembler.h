// Makes batches of rows of matrices, dense or CSR.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "batch/sparse_values.h"
#include "chunkhit/loader.h"
#include "chunkhit/sparse_loader.h"
#include "read/batch_ring.h"
#include "read/sparse_source.h"

namespace chunkhit {

/// What a loader's batches are.
struct SparseBatchFormat {
  SparseFormat format = SparseFormat::dense_f32;
  std::size_t matrix_count = 1;  ///< 2: with the held-out matrix
  EntryFormat x;
  EntryFormat held_out;  ///< never normalized
};

/// Returns what batches will be; throws usage when they cannot be that.
[[nodiscard]] SparseBatchFormat sparse_format(const SparseLoaderOptions& options, const SparseSource& source);

/// The memory of one matrix of a batch, used again and again.
struct SparseMatrixBuffer {
  BatchMemory memory;
  std::optional<DenseBatch> dense;  ///< none for CSR
  bool was_written = false;         ///< by the caller
};

/// A batch being made or waiting to be used.
struct SparseBuffer {
  std::vector<SparseMatrixBuffer> matrices;  ///< X; held_out
  std::vector<std::uint64_t> rows;
  std::vector<float> labels;
  SparseBatch batch;  ///< views of the above
};

/// What the matrices of a batch take.
[[nodiscard]] double sparse_buffer_bytes(const SparseBatchFormat& format, const SparseSource& source,
                                         std::size_t batch_size);

[[nodiscard]] SparseBuffer make_sparse_buffer(const SparseBatchFormat& format, const SparseSource& source,
                                              const BatchAllocator& allocator, std::size_t batch_size);

/// What all assemblers of a loader share.
struct SparseBatchContext {
  const SparseSource& source;
  const ChunkGrid& grid;
  ChunkCache& cache;
  const SparseBatchFormat& format;
  const BatchRing<SparseBuffer>& ring;
  BatchChunksSpec chunks;
};

class SparseBatchAssembler final : public BatchAssembler {
 public:
  explicit SparseBatchAssembler(const SparseBatchContext& context);
  /// Rows lie one behind the other, so a batch is one slice.
  void make(const BatchTask& task, std::size_t slot) override;
  [[nodiscard]] MadeBatch complete(const BatchTask& task, std::size_t slot) override;

 private:
  void find_rows(std::size_t matrix);
  void copy_rows(std::size_t matrix, SparseMatrixBuffer& buffer, SparseMatrix& view);
  void write_dense(const EntryValues& values, SparseMatrixBuffer& buffer);
  void show(const BatchTask& task, SparseBuffer& buffer);

  SparseBatchContext context_;
  BatchSamples samples_;
  std::array<EntryValues, 2> values_;
  std::vector<StoredRow> rows_;        // of one matrix, in the batch's order
  std::uint64_t bytes_ = 0;            // that the batch in work hands out
  std::uint64_t corrupt_samples_ = 0;  // left out of it
};

}  // namespace chunkhit
