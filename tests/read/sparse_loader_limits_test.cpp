#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "chunkhit/image_loader.h"
#include "chunkhit/sparse_loader.h"
#include "loaded_rows.h"

namespace chunkhit {
namespace {

TEST(SparseLoader, UsesTheCallersMemory) {
  const TemporaryFolder folder;
  int held = 0;
  std::vector<const std::uint8_t*> begins;
  {
    SparseLoader loader(write_shard(folder, known_shape(ValueType::u8, 2)),
                        {.format = SparseFormat::csr,
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
  EXPECT_THROW(SparseLoader(path, {.format = SparseFormat::dense_u8}), Error);
  EXPECT_THROW(SparseLoader(path, {.batch_size = 1 << 20}), Error);
  SparseLoader loader(path, {.batch_size = 10, .format = SparseFormat::csr});
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
  for (const Cache cache : kCaches) {
    SparseLoader loader(path, {.batch_size = 9, .cache = cache, .on_corrupt = OnCorrupt::skip});
    std::size_t rows = 0;
    for (const SparseBatch& batch : loader.epoch(0)) {
      expect_known_cells(batch, batch.rows, 0, SparseFormat::dense_f32, shape);
      rows += batch.rows.size();
    }
    EXPECT_EQ(rows, kRows - kKnownChunkRows);
    EXPECT_EQ(loader.stats().corrupt_samples, kKnownChunkRows);
  }
}

}  // namespace
}  // namespace chunkhit
