#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "batch/entry_values.h"
#include "chunkhit/sparse.h"
#include "known_matrices.h"
#include "temporary_folder.h"

namespace chunkhit {
namespace {

constexpr std::uint64_t kRows = 83;
constexpr SparseAs kForms[] = {SparseAs::dense_f32, SparseAs::dense_f16, SparseAs::dense_u8, SparseAs::csr};
constexpr Residency kPlaces[] = {Residency::automatic, Residency::decoded, Residency::compressed,
                                 Residency::stream};

std::string write_shard(const TemporaryFolder& folder, const MatrixShape& shape,
                        const std::string& filter = "zstd", std::size_t label_columns = 0) {
  const std::string path = folder.path("part.zst");
  write_known_matrices(path, known_matrix_spec(shape, filter, label_columns), kRows);
  return path;
}

/// The rating of a cell, 0 where there is none.
float known_cell(std::uint64_t row, std::uint64_t column, int matrix, const MatrixShape& shape) {
  return known_matrix(row, column) == matrix ? known_rating(row, column, shape) : 0;
}

/// A batch's matrix as dense floats, whatever its form.
std::vector<float> cells_of(const SparseMatrix& matrix, SparseAs as, double scale) {
  std::vector<float> cells(matrix.row_count() * matrix.column_count());
  if (as == SparseAs::dense_f32) std::copy_n(matrix.dense_f32().begin(), cells.size(), cells.begin());
  if (as == SparseAs::dense_u8)
    std::transform(matrix.dense_u8().begin(), matrix.dense_u8().end(), cells.begin(),
                   [&](std::uint8_t stored) { return static_cast<float>(stored * scale); });
  if (as != SparseAs::csr) return cells;
  const CsrBatch& csr = matrix.csr();
  EXPECT_EQ(csr.indptr.size(), matrix.row_count() + 1);
  for (std::size_t row = 0; row < matrix.row_count(); ++row)
    for (auto at = csr.indptr[row]; at < csr.indptr[row + 1]; ++at) {
      const auto entry = static_cast<std::size_t>(at);
      cells[row * matrix.column_count() + static_cast<std::size_t>(csr.indices[entry])] = csr.values[entry];
    }
  return cells;
}

void expect_known_cells(const SparseMatrix& matrix, std::span<const std::uint64_t> rows, int which,
                        SparseAs as, const MatrixShape& shape) {
  ASSERT_EQ(matrix.row_count(), rows.size());
  const std::vector<float> cells = cells_of(matrix, as, shape.scale);
  for (std::size_t row = 0; row < rows.size(); ++row)
    for (std::uint64_t column = 0; column < shape.column_count; ++column) {
      const float expected = known_cell(rows[row], column, which, shape);
      const std::size_t cell = row * shape.column_count + column;
      if (as == SparseAs::dense_f16)
        ASSERT_EQ(matrix.dense_f16()[cell], half_float(expected)) << rows[row] << " " << column;
      else
        ASSERT_EQ(cells[cell], expected) << rows[row] << " " << column;
    }
}

std::vector<std::uint64_t> all_rows() {
  std::vector<std::uint64_t> rows(kRows);
  for (std::uint64_t row = 0; row < kRows; ++row) rows[row] = row;
  return rows;
}

TEST(SparseLoader, GivesEveryRowOnceInEveryFormOrderAndResidency) {
  const TemporaryFolder folder;
  const MatrixShape shape = known_shape(ValueType::u8, 2, 0.5);
  const std::string path = write_shard(folder, shape);
  for (const SparseAs as : kForms)
    for (const Shuffle shuffle : {Shuffle::none, Shuffle::window, Shuffle::global})
      for (const Residency residency : kPlaces) {
        SparseLoader loader(path, {.batch_size = 9,
                                   .shuffle = shuffle,
                                   .seed = 7,
                                   .window_chunks = 3,
                                   .as = as,
                                   .residency = residency,
                                   .threads = 3});
        for (const std::uint64_t epoch : {0, 1, 2}) {
          std::vector<std::uint64_t> rows;
          for (const SparseBatch& batch : loader.epoch(epoch)) {
            expect_known_cells(batch, batch.rows, 0, as, shape);
            expect_known_cells(batch.held_out, batch.rows, 1, as, shape);
            rows.insert(rows.end(), batch.rows.begin(), batch.rows.end());
          }
          EXPECT_EQ(shuffle == Shuffle::none, rows == all_rows());
          std::sort(rows.begin(), rows.end());
          ASSERT_EQ(rows, all_rows());
        }
      }
}

TEST(SparseLoader, ReadsEveryValueTypeAndFilter) {
  const TemporaryFolder folder;
  for (const ValueType type : {ValueType::none, ValueType::u8, ValueType::u16, ValueType::f32})
    for (const std::string filter : {"zstd", "none"}) {
      const MatrixShape shape = known_shape(type, 1);
      const std::string path = write_shard(folder, shape, filter);
      SparseLoader loader(path, {.batch_size = 10, .as = SparseAs::csr});
      EXPECT_FALSE(loader.has_held_out());
      for (const SparseBatch& batch : loader.epoch(0)) {
        expect_known_cells(batch, batch.rows, 0, SparseAs::csr, shape);
        EXPECT_EQ(batch.held_out.row_count(), 0);
      }
      std::filesystem::remove(path);
    }
}

TEST(SparseLoader, GivesTheSameBatchesForAnyNumberOfThreads) {
  const TemporaryFolder folder;
  const std::string path = write_shard(folder, known_shape(ValueType::u8, 1));
  std::vector<std::vector<float>> first;
  for (const std::uint32_t threads : {1, 2, 5, 8}) {
    SparseLoader loader(path, {.batch_size = 7, .shuffle = Shuffle::global, .seed = 3, .threads = threads});
    std::vector<std::vector<float>> batches;
    for (const SparseBatch& batch : loader.epoch(2))
      batches.emplace_back(batch.dense_f32().begin(), batch.dense_f32().end());
    if (first.empty()) first = batches;
    EXPECT_TRUE(batches == first) << threads;
  }
}

TEST(SparseLoader, BinarizesScalesAndNormalizesXAndNeverNormalizesWhatIsHeldOut) {
  const TemporaryFolder folder;
  const MatrixShape shape = known_shape(ValueType::u8, 2);
  const std::string path = write_shard(folder, shape);
  SparseLoader loader(
      path, {.batch_size = 20, .as = SparseAs::csr, .binarize = true, .scale = 3, .normalize = RowNorm::l2});
  for (const SparseBatch& batch : loader.epoch(0)) {
    const CsrBatch& csr = batch.csr();
    for (std::size_t row = 0; row < batch.rows.size(); ++row)
      for (auto at = csr.indptr[row]; at < csr.indptr[row + 1]; ++at) {
        const auto count = static_cast<double>(csr.indptr[row + 1] - csr.indptr[row]);
        EXPECT_EQ(csr.values[static_cast<std::size_t>(at)], 3 / static_cast<float>(std::sqrt(9 * count)));
      }
    for (const float value : batch.held_out.csr().values) EXPECT_EQ(value, 3);
  }
}

TEST(SparseLoader, GivesCleanBatchesAfterTheCallerWroteToThem) {
  const TemporaryFolder folder;
  const MatrixShape shape = known_shape(ValueType::u8, 2);
  SparseLoader loader(write_shard(folder, shape), {.batch_size = 9, .shuffle = Shuffle::global});
  for (const std::uint64_t epoch : {0, 1, 2})
    for (const SparseBatch& batch : loader.epoch(epoch)) {
      expect_known_cells(batch, batch.rows, 0, SparseAs::dense_f32, shape);
      expect_known_cells(batch.held_out, batch.rows, 1, SparseAs::dense_f32, shape);
      if (batch.index % 2 == 0) std::ranges::fill(batch.writable_dense_f32(), 5.0F);
      if (batch.index % 3 == 0) std::ranges::fill(batch.held_out.writable_dense_f32(), 6.0F);
    }
}

TEST(SparseLoader, LeavesBatchesThatAreKeptAsTheyAre) {
  const TemporaryFolder folder;
  const MatrixShape shape = known_shape(ValueType::u8, 2);
  const std::string path = write_shard(folder, shape);
  std::vector<std::shared_ptr<const SparseBatch>> kept;
  {
    SparseLoader loader(path, {.batch_size = 9, .shuffle = Shuffle::global, .threads = 2, .prefetch = 1});
    for (const std::uint64_t epoch : {0, 1, 2})
      for (const SparseBatch& batch : loader.epoch(epoch))
        if (batch.index % 2 == epoch % 2) kept.push_back(loader.keep());
  }
  for (const auto& batch : kept) {
    expect_known_cells(*batch, batch->rows, 0, SparseAs::dense_f32, shape);
    expect_known_cells(batch->held_out, batch->rows, 1, SparseAs::dense_f32, shape);
  }
}

TEST(SparseLoader, GoesOnFromItsState) {
  const TemporaryFolder folder;
  const std::string path = write_shard(folder, known_shape(ValueType::u8, 1));
  const SparseLoaderOptions options{
      .batch_size = 6, .shuffle = Shuffle::window, .seed = 5, .window_chunks = 4, .as = SparseAs::csr};
  SparseLoader loader(path, options);
  std::vector<std::vector<std::uint64_t>> all;
  std::vector<std::string> states{loader.state()};
  for (const SparseBatch& batch : loader.epoch(0)) {
    all.emplace_back(batch.rows.begin(), batch.rows.end());
    states.push_back(loader.state());
  }
  for (std::size_t done = 0; done < states.size(); ++done) {
    SparseLoader other(path, options);
    other.restore(states[done]);
    std::size_t next = done;
    for (const SparseBatch& batch : other.epoch(0)) {
      ASSERT_LT(next, all.size());
      ASSERT_EQ(std::vector(batch.rows.begin(), batch.rows.end()), all[next++]);
    }
    EXPECT_EQ(next, all.size());
  }
}

TEST(SparseLoader, FetchesEachChunkOnce) {
  const TemporaryFolder folder;
  const std::string path = write_shard(folder, known_shape(ValueType::u8, 1));
  constexpr std::uint64_t kChunks = (kRows + kKnownChunkRows - 1) / kKnownChunkRows;
  SparseLoader decoded(path, {.batch_size = 9, .shuffle = Shuffle::global, .residency = Residency::decoded});
  SparseLoader stream(path, {.batch_size = 9,
                             .shuffle = Shuffle::window,
                             .window_chunks = 5,
                             .residency = Residency::stream,
                             .threads = 2,
                             .prefetch = 2});
  for (std::uint64_t epoch = 0; epoch < 20; ++epoch)
    for (SparseLoader* loader : {&decoded, &stream})
      for (const SparseBatch& batch : loader->epoch(epoch)) static_cast<void>(batch);
  EXPECT_EQ(decoded.stats().chunk_fetches, kChunks);
  // Threads read ahead into the next epoch.
  EXPECT_LE(stream.stats().chunk_fetches, 21 * kChunks);
}

TEST(SparseLoader, TellsIdsAndLabels) {
  const TemporaryFolder folder;
  const std::string path = write_shard(folder, known_shape(ValueType::u8, 1), "zstd", 2);
  SparseLoader loader(path, {.batch_size = 10, .shuffle = Shuffle::global, .as = SparseAs::csr});
  EXPECT_EQ(loader.size(), kRows);
  EXPECT_EQ(loader.column_count(), kKnownColumns);
  EXPECT_EQ(loader.row_id(8), "user 64");
  EXPECT_EQ(loader.column_id(3), "ítem 9");
  EXPECT_THROW(static_cast<void>(loader.row_id(kRows)), Error);
  EXPECT_THROW(static_cast<void>(loader.column_id(kKnownColumns)), Error);
  for (const SparseBatch& batch : loader.epoch(0)) {
    ASSERT_EQ(batch.labels.size(), 2 * batch.rows.size());
    for (std::size_t i = 0; i < batch.rows.size(); ++i)
      EXPECT_EQ(batch.labels[2 * i + 1], static_cast<float>(batch.rows[i]) + 0.25F);
  }
}

TEST(SparseLoader, UsesTheCallersMemory) {
  const TemporaryFolder folder;
  int held = 0;
  std::vector<const std::uint8_t*> begins;
  {
    SparseLoader loader(write_shard(folder, known_shape(ValueType::u8, 2)),
                        {.as = SparseAs::csr,
                         .allocator = {[&](std::size_t bytes) {
                                         ++held;
                                         void* const memory = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
                                         begins.push_back(static_cast<std::uint8_t*>(memory));
                                         return memory;
                                       },
                                       [&](void* memory, std::size_t) {
                                         --held;
                                         std::free(memory);
                                       }}});
    for (const SparseBatch& batch : loader.epoch(0))
      for (const SparseMatrix* matrix : {static_cast<const SparseMatrix*>(&batch), &batch.held_out}) {
        EXPECT_EQ(std::ranges::count(begins, matrix->csr().block.data()), 1);
        EXPECT_EQ(matrix->csr().values.data() + matrix->nnz(),
                  reinterpret_cast<const float*>(matrix->csr().block.data() + matrix->csr().block.size()));
      }
    EXPECT_GT(held, 0);
  }
  EXPECT_EQ(held, 0);
}

TEST(SparseLoader, RefusesFormsThatItDoesNotGive) {
  const TemporaryFolder folder;
  const std::string path = write_shard(folder, known_shape(ValueType::f32, 1));
  EXPECT_THROW(SparseLoader(path, {.as = SparseAs::dense_u8}), Error);
  EXPECT_THROW(SparseLoader(path, {.batch_size = 1 << 20}), Error);
  SparseLoader loader(path, {.batch_size = 10, .as = SparseAs::csr});
  const SparseBatch* const batch = loader.next();
  ASSERT_NE(batch, nullptr);
  EXPECT_THROW(static_cast<void>(batch->dense_f32()), Error);
  EXPECT_THROW(ImageLoader{path}, Error);
}

void flip_byte(const std::string& path, std::uint64_t at) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekg(static_cast<std::streamoff>(at));
  const auto byte = static_cast<char>(file.get() ^ 0x10);
  file.seekp(static_cast<std::streamoff>(at));
  file.put(byte);
}

TEST(SparseLoader, LeavesDamagedChunksOutOrEndsTheEpoch) {
  const TemporaryFolder folder;
  const MatrixShape shape = known_shape(ValueType::u8, 1);
  const std::string path = write_shard(folder, shape);
  flip_byte(path, 4096 + 40);  // in the first chunk
  SparseLoader strict(path, {.batch_size = 9});
  EXPECT_THROW(static_cast<void>(strict.next()), Error);
  for (const Residency residency : kPlaces) {
    SparseLoader loader(path, {.batch_size = 9, .residency = residency, .on_corrupt = OnCorrupt::skip});
    std::size_t rows = 0;
    for (const SparseBatch& batch : loader.epoch(0)) {
      expect_known_cells(batch, batch.rows, 0, SparseAs::dense_f32, shape);
      rows += batch.rows.size();
    }
    EXPECT_EQ(rows, kRows - kKnownChunkRows);
    EXPECT_EQ(loader.stats().corrupt_samples, kKnownChunkRows);
  }
}

TEST(SparseLoader, SharesAnEpochAmongRanksAndEchoes) {
  const TemporaryFolder folder;
  const std::string path = write_shard(folder, known_shape(ValueType::u8, 1));
  std::vector<int> seen(kRows);
  for (const std::uint32_t rank : {0, 1, 2}) {
    SparseLoader loader(path, {.batch_size = 7,
                               .shuffle = Shuffle::global,
                               .rank = rank,
                               .world_size = 3,
                               .uneven = Uneven::drop,
                               .echo = 2,
                               .as = SparseAs::csr});
    for (const SparseBatch& batch : loader.epoch(0))
      for (const std::uint64_t row : batch.rows) ++seen[row];
  }
  EXPECT_EQ(std::ranges::count(seen, 2), kRows / 3 * 3);
  EXPECT_EQ(std::ranges::count(seen, 0), kRows % 3);
}

}  // namespace
}  // namespace chunkhit
