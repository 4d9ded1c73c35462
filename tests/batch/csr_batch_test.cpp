#include <gtest/gtest.h>

#include "base/bytes.h"
#include "batch/sparse_values.h"
#include "chunkhit/error.h"
#include "support/stored_rows.h"

namespace chunkhit {
namespace {

template <class Number>
std::vector<Number> list(std::span<const Number> numbers) {
  return {numbers.begin(), numbers.end()};
}

TEST(CsrBatch, HasItsArraysInOnePieceOfMemory) {
  ByteBuffer block(csr_block_bytes(3, 4, false));
  const RowBytes<std::uint16_t, std::uint8_t> first({1, 60000}, {2, 3}), none({}, {}), last({0, 2}, {10, 1});
  const CsrBatch batch = write_csr_batch(std::vector{first.row(), none.row(), last.row()},
                                         EntryValues({2, ValueType::u8, 0.5}), block.data());
  EXPECT_EQ(list(batch.indptr), (std::vector<std::int32_t>{0, 2, 2, 4}));
  EXPECT_EQ(list(batch.indices), (std::vector<std::int32_t>{1, 60000, 0, 2}));
  EXPECT_EQ(list(batch.values), (std::vector<float>{1, 1.5f, 5, 0.5f}));
  EXPECT_EQ(batch.block.data(), block.data());
  EXPECT_EQ(batch.block.size(), block.size());
  EXPECT_EQ(reinterpret_cast<const std::uint8_t*>(batch.indices.data()), block.data() + 64);
  EXPECT_EQ(reinterpret_cast<const std::uint8_t*>(batch.values.data()), block.data() + 128);
}

TEST(CsrBatch, HasTimesBehindTheValues) {
  ByteBuffer block(csr_block_bytes(3, 3, true));
  const RowBytes<std::uint16_t, std::uint8_t> first({1, 60000}, {2, 3}, {-5, INT64_MAX}), none({}, {}),
      last({2}, {1}, {7});
  EntryFormat format{2, ValueType::u8, 1};
  format.has_times = true;
  const CsrBatch batch =
      write_csr_batch(std::vector{first.row(), none.row(), last.row()}, EntryValues(format), block.data());
  EXPECT_EQ(list(batch.values), (std::vector<float>{2, 3, 1}));
  EXPECT_EQ(list(batch.times), (std::vector<std::int64_t>{-5, INT64_MAX, 7}));
  EXPECT_EQ(reinterpret_cast<const std::uint8_t*>(batch.times.data()), block.data() + 192);
  EXPECT_EQ(batch.block.size(), block.size());
}

TEST(CsrBatch, TakesWideColumns) {
  ByteBuffer block(csr_block_bytes(1, 2, false));
  const RowBytes<std::uint32_t, float> row({7, 3'000'000}, {-1, 2});
  const CsrBatch batch =
      write_csr_batch(std::vector{row.row()}, EntryValues({4, ValueType::f32}), block.data());
  EXPECT_EQ(list(batch.indices), (std::vector<std::int32_t>{7, 3'000'000}));
  EXPECT_EQ(list(batch.values), (std::vector<float>{-1, 2}));
}

TEST(CsrBatch, RefusesMoreEntriesThanInt32Counts) {
  EXPECT_NO_THROW(static_cast<void>(csr_block_bytes(1, 0x7fffffff, false)));
  EXPECT_THROW(static_cast<void>(csr_block_bytes(1, 0x80000000, false)), Error);
}

}  // namespace
}  // namespace chunkhit
