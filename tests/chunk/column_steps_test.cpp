#include "chunk/column_steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <vector>

#include "chunkhit/error.h"
#include "support/row_blocks.h"
#include "support/simd_targets.h"

namespace chunkhit {
namespace {

TEST(ColumnSteps, GivesBackColumnsWithEveryInstructionSet) {
  const CsrRows narrow = random_rows(200, 65536, 400);
  const CsrRows wide = random_rows(200, UINT32_MAX, 80'000'000);
  const MatrixShape narrow_shape{.column_count = 65536, .value_type = ValueType::none};
  const MatrixShape wide_shape{.column_count = UINT32_MAX, .value_type = ValueType::none};
  ASSERT_GT(narrow.nnz(), 5000u);
  ASSERT_GT(wide.nnz(), 5000u);
  const ByteBuffer narrow_raw = encode(narrow, narrow_shape);
  const ByteBuffer wide_raw = encode(wide, wide_shape);
  for_each_simd_target([&](const char* target) {
    const auto ids = decode<std::uint16_t>(narrow_raw, 0, narrow_shape).ids;
    EXPECT_TRUE(std::ranges::equal(ids, narrow.indices)) << target;
    EXPECT_EQ(decode<std::uint32_t>(narrow_raw, 0, narrow_shape).ids, narrow.indices) << target;
    EXPECT_EQ(decode<std::uint32_t>(wide_raw, 0, wide_shape).ids, wide.indices) << target;
  });
}

TEST(ColumnSteps, GivesBackColumnsThatRepeatWithEveryInstructionSet) {
  for (const std::uint32_t columns : {3U, 65536U, UINT32_MAX}) {
    CsrRows rows = random_rows(200, columns, std::max(1U, columns / 50));
    for (std::size_t row = 0, at = 0; row < rows.row_count(); ++row)
      for (; at < rows.indptr[row + 1]; ++at)  // two in three are those before them
        if (at > rows.indptr[row] && at % 3 != 0) rows.indices[at] = rows.indices[at - 1];
    rows.times.resize(rows.nnz());
    const MatrixShape shape{
        .column_count = columns, .value_type = ValueType::none, .has_times = true, .has_repeats = true};
    const ByteBuffer raw = encode(rows, shape);
    for_each_simd_target([&](const char* target) {
      EXPECT_EQ(decode<std::uint32_t>(raw, 0, shape).ids, rows.indices) << target;
      if (columns > 65536) return;
      EXPECT_TRUE(std::ranges::equal(decode<std::uint16_t>(raw, 0, shape).ids, rows.indices)) << target;
    });
  }
}

TEST(ColumnSteps, GivesBackTheLastColumnThatThereCanBe) {
  // Seventeen neighbours up to the end, where a sum of 32 bits wraps around.
  CsrRows rows;
  for (std::uint32_t i = 0; i < 17; ++i) rows.indices.push_back(UINT32_MAX - 17 + i);
  rows.indptr.push_back(rows.nnz());
  const MatrixShape shape{.column_count = UINT32_MAX, .value_type = ValueType::none};
  const ByteBuffer raw = encode(rows, shape);
  for_each_simd_target([&](const char* target) {
    EXPECT_EQ(decode<std::uint32_t>(raw, 0, shape).ids, rows.indices) << target;
  });
}

TEST(ColumnSteps, DividesStepsByWhereInTheirRowTheyBegin) {
  const CsrRows rows = random_rows(60, 60000, 3000);
  std::vector<std::uint64_t> expected(kStepGroups);
  for (std::size_t row = 0; row < rows.row_count(); ++row) {
    std::uint64_t next = 0;
    const std::uint64_t length = rows.indptr[row + 1] - rows.indptr[row];
    for (std::uint64_t at = rows.indptr[row]; at < rows.indptr[row + 1]; ++at) {
      ++expected[std::min<std::size_t>(15,
                                       static_cast<std::size_t>(std::bit_width(4 * (next + 8) / length)))];
      next = std::uint64_t{rows.indices[at]} + 1;
    }
  }
  const MatrixShape shape{.column_count = 60000, .value_type = ValueType::none};
  const ByteBuffer raw = encode(rows, shape);
  const RowBlockHeader header = decode_row_block_header(raw, shape);
  std::size_t used = 0;
  for (std::size_t group = 0; group < kStepGroups; ++group) {
    EXPECT_EQ(header.matrices[0].groups[group].first_bytes, expected[group]) << group;
    used += expected[group] > 0 ? 1 : 0;
  }
  EXPECT_GT(used, 6u);
}

TEST(Leb128, IsReadAtAnyLengthButNotAbove32Bits) {
  const std::vector<std::uint8_t> longest{0xff, 0xff, 0xff, 0xff, 0x0f};
  Bytes left = longest;
  EXPECT_EQ(decode_leb128(left), UINT32_MAX);
  EXPECT_TRUE(left.empty());
  const std::vector<std::uint8_t> padded{0x81, 0x80, 0x00, 7};
  left = padded;
  EXPECT_EQ(decode_leb128(left), 1u);
  EXPECT_EQ(left.size(), 1u);
  for (const std::vector<std::uint8_t>& bad : {std::vector<std::uint8_t>{0xff, 0xff, 0xff, 0xff, 0x1f},
                                               {0x80, 0x80, 0x80, 0x80, 0x80, 0x00},
                                               {0x80}}) {
    left = bad;
    EXPECT_THROW(static_cast<void>(decode_leb128(left)), Error);
  }
}

}  // namespace
}  // namespace chunkhit
