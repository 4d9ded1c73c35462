#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <vector>

#include "chunkhit/sparse_loader.h"
#include "loaded_rows.h"

namespace chunkhit {
namespace {

using std::chrono::milliseconds;

using SeenRows = std::pair<std::vector<std::uint64_t>, std::vector<float>>;

SeenRows seen(const SparseBatch& batch) {
  return {{batch.rows.begin(), batch.rows.end()}, {batch.dense_f32().begin(), batch.dense_f32().end()}};
}

TEST(SparseWait, ChangesNothingOfWhatNextGives) {
  const TemporaryFolder folder;
  const std::string path = write_shard(folder, known_shape(ValueType::u8, 1));
  for (const Cache cache : kCaches) {
    const SparseLoaderOptions options{
        .batch_size = 9, .shuffle = Shuffle::global, .cache = cache, .threads = 2, .prefetch = 1};
    SparseLoader plain(path, options), waiting(path, options);
    for (const std::uint64_t epoch : {0, 1}) {
      std::vector<SeenRows> expected, found;
      for (const SparseBatch& batch : plain.epoch(epoch)) expected.push_back(seen(batch));
      static_cast<void>(waiting.epoch(epoch));
      for (const SparseBatch* batch = nullptr;; found.push_back(seen(*batch))) {
        while (!waiting.wait_for(milliseconds(1))) continue;
        batch = waiting.next();
        if (batch == nullptr) break;
      }
      EXPECT_TRUE(found == expected);
      EXPECT_TRUE(waiting.wait_for(milliseconds(0)));
    }
  }
}

TEST(SparseWait, GivesTheLastBatchBackAndLeavesTheStateAlone) {
  const TemporaryFolder folder;
  SparseLoader loader(write_shard(folder, known_shape(ValueType::u8, 1)), {.batch_size = 9});
  ASSERT_NE(loader.next(), nullptr);
  const std::shared_ptr<const SparseBatch> kept = loader.retain();
  const SeenRows expected = seen(*kept);
  const std::string state = loader.state();
  while (!loader.wait_for(milliseconds(1))) continue;
  EXPECT_EQ(loader.retain(), nullptr);
  EXPECT_EQ(loader.state(), state);
  EXPECT_EQ(loader.stats().retained_batches, 1);
  ASSERT_NE(loader.next(), nullptr);
  EXPECT_TRUE(seen(*kept) == expected);
}

TEST(SparseKeep, OfABatchThatWasWrittenToLeavesLaterOnesClean) {
  const TemporaryFolder folder;
  const MatrixShape shape = known_shape(ValueType::u8, 2);
  SparseLoader loader(write_shard(folder, shape),
                      {.batch_size = 9, .shuffle = Shuffle::global, .threads = 2, .prefetch = 1});
  std::vector<std::shared_ptr<const SparseBatch>> kept;
  for (const std::uint64_t epoch : {0, 1, 2, 3})
    for (const SparseBatch& batch : loader.epoch(epoch)) {
      expect_known_cells(batch, batch.rows, 0, SparseFormat::dense_f32, shape);
      expect_known_cells(batch.held_out, batch.rows, 1, SparseFormat::dense_f32, shape);
      if (batch.index % 3 != 0) continue;
      kept.push_back(loader.retain());
      for (float& cell : batch.writable_dense_f32()) cell = 8;
      if (kept.size() > 2) kept.erase(kept.begin());  // its memory goes back to the ring
    }
  for (const auto& batch : kept)
    for (const float cell : batch->dense_f32()) ASSERT_EQ(cell, 8);
}

TEST(SparseKeep, OfCsrBatchesOutlivesTheLoader) {
  const TemporaryFolder folder;
  const MatrixShape shape = known_shape(ValueType::u16, 1);
  std::vector<std::shared_ptr<const SparseBatch>> kept;
  {
    SparseLoader loader(write_shard(folder, shape),
                        {.batch_size = 9, .format = SparseFormat::csr, .threads = 2});
    for (const SparseBatch& batch : loader.epoch(0)) {
      EXPECT_FALSE(batch.rows.empty());
      kept.push_back(loader.retain());
    }
    EXPECT_EQ(loader.stats().retained_batches, kept.size());
  }
  for (const auto& batch : kept) expect_known_cells(*batch, batch->rows, 0, SparseFormat::csr, shape);
}

}  // namespace
}  // namespace chunkhit
