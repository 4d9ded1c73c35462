#include "chunkhit/sparse_loader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "loaded_rows.h"

namespace chunkhit {
namespace {

std::vector<std::uint64_t> all_rows() {
  std::vector<std::uint64_t> rows(kRows);
  for (std::uint64_t row = 0; row < kRows; ++row) rows[row] = row;
  return rows;
}

TEST(SparseLoader, GivesEveryRowOnceInEveryFormOrderAndResidency) {
  const TemporaryFolder folder;
  const MatrixShape shape = known_shape(ValueType::u8, 2, 0.5);
  const std::string path = write_shard(folder, shape);
  for (const SparseFormat format : kSparseFormats)
    for (const Shuffle shuffle : {Shuffle::none, Shuffle::window, Shuffle::global})
      for (const Cache cache : kCaches) {
        SparseLoader loader(path, {.batch_size = 9,
                                   .shuffle = shuffle,
                                   .seed = 7,
                                   .window_chunks = 3,
                                   .format = format,
                                   .cache = cache,
                                   .threads = 3});
        for (const std::uint64_t epoch : {0, 1, 2}) {
          std::vector<std::uint64_t> rows;
          for (const SparseBatch& batch : loader.epoch(epoch)) {
            expect_known_cells(batch, batch.rows, 0, format, shape);
            expect_known_cells(batch.held_out, batch.rows, 1, format, shape);
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
      SparseLoader loader(path, {.batch_size = 10, .format = SparseFormat::csr});
      EXPECT_FALSE(loader.has_held_out());
      for (const SparseBatch& batch : loader.epoch(0)) {
        expect_known_cells(batch, batch.rows, 0, SparseFormat::csr, shape);
        EXPECT_EQ(batch.held_out.row_count(), 0);
      }
      std::filesystem::remove(path);
    }
}

TEST(SparseLoader, GivesTheTimeOfEachRatingInCsrBatchesAlone) {
  const TemporaryFolder folder;
  const MatrixShape shape = timed(known_shape(ValueType::u8, 2));
  const std::string path = write_shard(folder, shape);
  for (const SparseFormat format : kSparseFormats)
    for (const Cache cache : kCaches) {
      SparseLoader loader(path,
                          {.batch_size = 9, .shuffle = Shuffle::window, .format = format, .cache = cache});
      for (const SparseBatch& batch : loader.epoch(0)) {
        expect_known_cells(batch, batch.rows, 0, format, shape);
        expect_known_cells(batch.held_out, batch.rows, 1, format, shape);
      }
    }
  SparseLoader without(path, {.batch_size = 9, .format = SparseFormat::csr, .times = false});
  for (const SparseBatch& batch : without.epoch(0))
    expect_known_cells(batch, batch.rows, 0, SparseFormat::csr, known_shape(ValueType::u8, 2));
}

TEST(SparseLoader, RefusesSourcesOfWhichOneHasTimes) {
  const TemporaryFolder folder;
  const std::vector<std::string> paths{folder.path("with.zst"), folder.path("without.zst")};
  write_known_matrices(paths[0], known_matrix_spec(timed(known_shape(ValueType::u8, 1)), "zstd"), kRows);
  write_known_matrices(paths[1], known_matrix_spec(known_shape(ValueType::u8, 1), "zstd"), kRows);
  try {
    const SparseLoader loader(paths);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_data);
    EXPECT_NE(std::string(error.what()).find("without.zst has no times of ratings"), std::string::npos);
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
  SparseLoader loader(path, {.batch_size = 20,
                             .format = SparseFormat::csr,
                             .binarize = true,
                             .scale = 3,
                             .normalize = RowNorm::l2});
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

TEST(SparseLoader, GivesEveryRatingOnceAsAPairWithNegativesOfNeitherMatrix) {
  for (const ValueType type : {ValueType::none, ValueType::u8, ValueType::u16, ValueType::f32}) {
    const TemporaryFolder folder;
    const MatrixShape shape = known_shape(type, 2);
    const std::string path = write_shard(folder, shape, "zstd", 2);
    SparseLoader loader(path, {.batch_size = 50,
                               .shuffle = Shuffle::window,
                               .window_chunks = 3,
                               .format = SparseFormat::pairs,
                               .negatives = 2});
    std::set<std::pair<std::int64_t, std::int64_t>> seen;
    for (const SparseBatch& batch : loader.epoch(1)) {
      const PairBatch& pairs = batch.pairs();
      ASSERT_EQ(pairs.negatives.size(), 2 * pairs.items.size());
      ASSERT_EQ(batch.labels.size(), 2 * pairs.items.size());
      EXPECT_EQ(batch.held_out.row_count(), 0u);
      for (std::size_t at = 0; at < pairs.items.size(); ++at) {
        const std::uint64_t row = batch.rows[at];
        ASSERT_EQ(pairs.users[at], static_cast<std::int64_t>(row));
        ASSERT_EQ(pairs.values[at], known_cell(row, static_cast<std::uint64_t>(pairs.items[at]), 0, shape));
        ASSERT_TRUE(seen.emplace(pairs.users[at], pairs.items[at]).second);
        for (const std::int64_t item : pairs.negatives.subspan(2 * at, 2))
          for (const int matrix : {0, 1})
            ASSERT_NE(known_matrix(row, static_cast<std::uint64_t>(item)), matrix);
      }
      EXPECT_THROW(static_cast<void>(batch.csr()), Error);
      EXPECT_THROW(static_cast<void>(RowItems(batch)), Error);
    }
    EXPECT_EQ(seen.size(), known_rows(shape, 0, 0, kRows).nnz());
    EXPECT_EQ(seen.size(), loader.size());
  }
}

TEST(SparseLoader, GivesCleanBatchesAfterTheCallerWroteToThem) {
  const TemporaryFolder folder;
  const MatrixShape shape = known_shape(ValueType::u8, 2);
  SparseLoader loader(write_shard(folder, shape), {.batch_size = 9, .shuffle = Shuffle::global});
  for (const std::uint64_t epoch : {0, 1, 2})
    for (const SparseBatch& batch : loader.epoch(epoch)) {
      expect_known_cells(batch, batch.rows, 0, SparseFormat::dense_f32, shape);
      expect_known_cells(batch.held_out, batch.rows, 1, SparseFormat::dense_f32, shape);
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
        if (batch.index % 2 == epoch % 2) kept.push_back(loader.retain());
  }
  for (const auto& batch : kept) {
    expect_known_cells(*batch, batch->rows, 0, SparseFormat::dense_f32, shape);
    expect_known_cells(batch->held_out, batch->rows, 1, SparseFormat::dense_f32, shape);
  }
}

TEST(SparseLoader, GoesOnFromItsState) {
  const TemporaryFolder folder;
  const std::string path = write_shard(folder, known_shape(ValueType::u8, 1));
  const SparseLoaderOptions options{.batch_size = 6,
                                    .shuffle = Shuffle::window,
                                    .seed = 5,
                                    .window_chunks = 4,
                                    .format = SparseFormat::csr};
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
  SparseLoader decoded(path, {.batch_size = 9, .shuffle = Shuffle::global, .cache = Cache::decoded});
  SparseLoader stream(path, {.batch_size = 9,
                             .shuffle = Shuffle::window,
                             .window_chunks = 5,
                             .cache = Cache::none,
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
  SparseLoader loader(path, {.batch_size = 10, .shuffle = Shuffle::global, .format = SparseFormat::csr});
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

TEST(SparseLoader, SharesAnEpochAmongRanksAndEchoes) {
  const TemporaryFolder folder;
  const std::string path = write_shard(folder, known_shape(ValueType::u8, 1));
  std::vector<int> seen(kRows);
  for (const std::uint32_t rank : {0, 1, 2}) {
    SparseLoader loader(path, {.batch_size = 7,
                               .shuffle = Shuffle::global,
                               .rank = rank,
                               .world_size = 3,
                               .rank_remainder = RankRemainder::drop,
                               .echo = 2,
                               .format = SparseFormat::csr});
    for (const SparseBatch& batch : loader.epoch(0))
      for (const std::uint64_t row : batch.rows) ++seen[row];
  }
  EXPECT_EQ(std::ranges::count(seen, 2), kRows / 3 * 3);
  EXPECT_EQ(std::ranges::count(seen, 0), kRows % 3);
}

TEST(SparseLoader, RanksReadEachChunkOnce) {
  const TemporaryFolder folder;
  const std::string path = write_shard(folder, known_shape(ValueType::u8, 1));
  constexpr std::uint64_t kEpochs = 3, kRanks = 3, kChunks = (kRows + kKnownChunkRows - 1) / kKnownChunkRows;
  std::uint64_t fetches = 0;
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    SparseLoader loader(path, {.batch_size = 7,
                               .shuffle = Shuffle::window,
                               .window_chunks = 3,
                               .rank = rank,
                               .world_size = kRanks,
                               .format = SparseFormat::csr,
                               .cache = Cache::none,
                               .threads = 1,
                               .prefetch = 1});
    for (std::uint64_t epoch = 0; epoch < kEpochs; ++epoch)
      for ([[maybe_unused]] const SparseBatch& batch : loader.epoch(epoch)) continue;
    fetches += loader.stats().chunk_fetches;
  }
  // The epoch behind the last one is read ahead.
  EXPECT_LE(fetches, (kEpochs + 1) * (kChunks + kRanks - 1));
}

}  // namespace
}  // namespace chunkhit
