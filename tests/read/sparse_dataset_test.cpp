#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "chunkhit/dataset.h"
#include "chunkhit/loader.h"
#include "loaded_rows.h"
#include "store/hdf5/matrix.h"

namespace chunkhit {
namespace {

// Not sorted, and one of them twice.
const std::vector<std::uint64_t> kSomeRows{80, 3, 82, 0, 41, 3, 7, 4};

void expect_known_rows(const SparseRows& found, const std::vector<std::uint64_t>& rows, int matrix,
                       const MatrixShape& shape) {
  ASSERT_EQ(found.indptr.size(), rows.size() + 1);
  ASSERT_EQ(found.indptr[0], 0);
  ASSERT_EQ(found.indices.size(), found.values.size());
  ASSERT_EQ(found.times.size(), shape.has_times ? found.indices.size() : 0);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const CsrRows row = known_rows(shape, matrix, rows[i], 1);
    const auto begin = static_cast<std::size_t>(found.indptr[i]);
    ASSERT_EQ(static_cast<std::size_t>(found.indptr[i + 1]) - begin, row.nnz()) << rows[i];
    for (std::size_t entry = 0; entry < row.nnz(); ++entry) {
      ASSERT_EQ(static_cast<std::uint32_t>(found.indices[begin + entry]), row.indices[entry]) << rows[i];
      ASSERT_EQ(found.values[begin + entry], row.values.empty() ? 1 : row.values[entry]) << rows[i];
      if (shape.has_times) {
        ASSERT_EQ(found.times[begin + entry], row.times[entry]) << rows[i];
      }
    }
  }
}

std::string write_hdf5(const TemporaryFolder& folder, const MatrixShape& shape) {
  const PartSpec spec = known_matrix_spec(shape, "none");
  const std::string path = folder.path("part.h5");
  MatrixHdf5Writer writer(path, spec);
  writer.append(known_rows(shape, 0, 0, kRows).view(), known_rows(shape, 1, 0, kRows).view());
  static_cast<void>(writer.finish(known_users(spec, kRows)));
  return path;
}

TEST(SparseDataset, GivesRowsInTheOrderThatIsAskedForInEveryResidency) {
  const TemporaryFolder folder;
  const MatrixShape shape = known_shape(ValueType::u8, 2, 0.5);
  const std::string path = write_shard(folder, shape);
  for (const Cache cache : kCaches) {
    const SparseDataset dataset(path, {.cache = cache});
    EXPECT_EQ(dataset.size(), kRows);
    EXPECT_EQ(dataset.column_count(), kKnownColumns);
    EXPECT_TRUE(dataset.has_held_out());
    expect_known_rows(dataset.read(kSomeRows), kSomeRows, 0, shape);
    expect_known_rows(dataset.read(kSomeRows, MatrixName::held_out), kSomeRows, 1, shape);
    EXPECT_EQ(dataset.read({}).indptr, std::vector<std::int64_t>{0});
  }
}

TEST(SparseDataset, ReadsEveryValueTypeAndFilter) {
  for (const ValueType type : {ValueType::none, ValueType::u8, ValueType::u16, ValueType::f32})
    for (const char* filter : {"zstd", "none"}) {
      const TemporaryFolder folder;
      const MatrixShape shape = type == ValueType::u8 ? timed(known_shape(type, 1)) : known_shape(type, 1);
      const SparseDataset dataset(write_shard(folder, shape, filter));
      EXPECT_FALSE(dataset.has_held_out());
      expect_known_rows(dataset.read(kSomeRows), kSomeRows, 0, shape);
    }
}

TEST(SparseDataset, ReadsHdf5InEveryResidency) {
  const TemporaryFolder folder;
  const MatrixShape shape = known_shape(ValueType::u8, 2);
  const std::string path = write_hdf5(folder, shape);
  for (const Cache cache : kCaches) {
    const SparseDataset dataset(path, {.cache = cache});
    expect_known_rows(dataset.read(kSomeRows), kSomeRows, 0, shape);
    expect_known_rows(dataset.read(kSomeRows, MatrixName::held_out), kSomeRows, 1, shape);
  }
}

TEST(SparseDataset, IsReadByManyThreadsAtATime) {
  const TemporaryFolder folder;
  const MatrixShape shape = known_shape(ValueType::u8, 1);
  const std::string path = write_shard(folder, shape);
  for (const Cache cache : kCaches) {
    const SparseDataset dataset(path, {.cache = cache});
    std::vector<std::thread> threads;
    for (std::uint64_t thread = 0; thread < 4; ++thread)
      threads.emplace_back([&, thread] {
        for (std::uint64_t row = 0; row < kRows; ++row) {
          const std::vector<std::uint64_t> rows{(row * (thread + 1)) % kRows, row};
          expect_known_rows(dataset.read(rows), rows, 0, shape);
        }
      });
    for (std::thread& thread : threads) thread.join();
  }
}

TEST(SparseDataset, RefusesRowsAndMatricesThatItHasNot) {
  const TemporaryFolder folder;
  const SparseDataset dataset(write_shard(folder, known_shape(ValueType::u8, 1)));
  const std::vector<std::uint64_t> beyond{0, kRows};
  const std::vector<std::uint64_t> first{0};
  EXPECT_THROW(static_cast<void>(dataset.read(beyond)), Error);
  EXPECT_THROW(static_cast<void>(dataset.read(first, MatrixName::held_out)), Error);
  EXPECT_THROW(static_cast<void>(dataset.labels(kRows)), Error);
  EXPECT_THROW(static_cast<void>(dataset.row_id(kRows)), Error);
  EXPECT_THROW(static_cast<void>(dataset.column_id(kKnownColumns)), Error);
}

TEST(SparseDataset, TellsIdsAndLabels) {
  const TemporaryFolder folder;
  const SparseDataset dataset(write_shard(folder, known_shape(ValueType::u8, 1), "zstd", 2));
  EXPECT_EQ(dataset.row_id(8), "user 64");
  EXPECT_EQ(dataset.column_id(3), "ítem 9");
  ASSERT_EQ(dataset.labels(82).size(), 2);
  EXPECT_EQ(dataset.labels(82)[1], 82.25F);
  EXPECT_EQ(dataset.info().samples, kRows);
}

TEST(SparseDataset, OfHdf5TellsItsEntries) {
  const TemporaryFolder folder;
  const MatrixShape shape = known_shape(ValueType::u8, 2);
  const SparseDataset dataset(write_hdf5(folder, shape));
  ASSERT_TRUE(dataset.info().is_matrix());
  EXPECT_THROW(static_cast<void>(dataset.info().images()), Error);
  ASSERT_EQ(dataset.info().matrix().matrices.size(), 2);
  for (const int matrix : {0, 1}) {
    const CsrRows rows = known_rows(shape, matrix, 0, kRows);
    std::uint64_t longest = 0;
    for (std::size_t row = 0; row < kRows; ++row)
      longest = std::max(longest, rows.indptr[row + 1] - rows.indptr[row]);
    const PackMatrix& found = dataset.info().matrix().matrices[static_cast<std::size_t>(matrix)];
    EXPECT_EQ(found.nnz, rows.nnz());
    EXPECT_EQ(found.longest_row, longest);
  }
}

}  // namespace
}  // namespace chunkhit
