#include "chunk/row_block.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

#include "chunk/column_steps.h"
#include "chunkhit/error.h"
#include "support/simd_targets.h"

namespace chunkhit {
namespace {

/// One matrix of a block, decoded.
template <class Id>
struct DecodedRows {
  std::vector<std::uint64_t> row_ends;
  std::vector<Id> ids;
  std::vector<std::uint8_t> values;
};

template <class Id>
DecodedRows<Id> decode(Bytes raw, std::size_t matrix, const MatrixShape& shape,
                       std::uint64_t first_entry = 0) {
  const RowBlockHeader header = decode_row_block_header(raw, shape);
  const std::uint64_t nnz = header.matrices[matrix].nnz;
  DecodedRows<Id> rows{std::vector<std::uint64_t>(header.row_count), std::vector<Id>(nnz),
                       std::vector<std::uint8_t>(nnz * value_bytes(shape.value_type))};
  decode_rows<Id>(header, matrix, shape, {rows.row_ends, first_entry, rows.ids, rows.values});
  return rows;
}

ByteBuffer encode(const CsrRows& rows, const MatrixShape& shape) {
  ByteBuffer raw;
  const CsrView view = rows.view();
  encode_row_block({&view, 1}, shape, 0, raw);
  return raw;
}

std::string fault_of(Bytes raw, const MatrixShape& shape) {
  try {
    static_cast<void>(decode<std::uint32_t>(raw, 0, shape));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_data);
    return error.what();
  }
  return "";
}

/// Rows of different lengths; a column in four is up to `largest_step` behind the one before, the others near
/// it.
CsrRows random_rows(std::size_t row_count, std::uint32_t columns, std::uint32_t largest_step) {
  std::mt19937 random(7);
  CsrRows rows;
  for (std::size_t row = 0; row < row_count; ++row) {
    // A row in nine has none; of the others one in two is cut short.
    const std::size_t most = row % 9 == 8 ? 0 : row % 2 == 0 ? random() % 40 : 1000;
    for (std::uint64_t column = random() % largest_step;
         column < columns && rows.nnz() - rows.indptr.back() < most;
         column += 1 + random() % (random() % 4 == 0 ? largest_step : 100))
      rows.indices.push_back(static_cast<std::uint32_t>(column));
    rows.indptr.push_back(rows.nnz());
  }
  return rows;
}

// Three rows by hand: {0: 0.5, 1: 5, 5: 3}, nothing, {300: 2}.
const MatrixShape kStars{.column_count = 301, .value_type = ValueType::u8, .scale = 0.5};

CsrRows three_rows() { return {{0, 3, 3, 4}, {0, 1, 5, 300}, {0.5f, 5.0f, 3.0f, 2.0f}}; }

TEST(RowBlock, LiesAsItsPageSays) {
  const std::vector<std::uint8_t> expected{3, 0,  0, 0,    1, 1, 1,    0,     // rows, version, matrices, u8
                                           0, 0,  0, 0,    0, 0, 0xe0, 0x3f,  // scale 0.5
                                           0, 0,  0, 0,    0, 0, 0,    0,     // first row
                                           4, 0,  0, 0,    0, 0, 0,    0,     // entries
                                           3, 0,  0, 0,    0, 0, 0,    0,     // the longest row
                                           3, 0,  0, 0,    0, 0, 0,    0,     // bytes of lengths
                                           5, 0,  0, 0,    0, 0, 0,    0,     // bytes of columns
                                           3, 0,  1,                          // lengths
                                           0, 0,  3, 0xac, 2,                 // steps 0, 0, 3; 300
                                           1, 10, 6, 4};
  const ByteBuffer found = encode(three_rows(), kStars);
  EXPECT_EQ(std::vector<std::uint8_t>(found.begin(), found.end()), expected);
}

TEST(RowBlock, GivesBackTheRowsOfBothMatrices) {
  const CsrRows x = three_rows();
  const CsrRows held_out{{0, 0, 2, 2}, {7, 9}, {1.0f, 4.5f}};
  MatrixShape shape = kStars;
  shape.matrix_count = 2;
  ByteBuffer raw;
  const std::vector<CsrView> matrices{x.view(), held_out.view()};
  encode_row_block(matrices, shape, 40, raw);
  EXPECT_EQ(decode_row_block_header(raw, shape).first_row, 40u);
  EXPECT_EQ(decode_row_block_header(raw, shape).matrices[0].longest_row, 3u);
  const auto first = decode<std::uint16_t>(raw, 0, shape, 100);
  EXPECT_EQ(first.row_ends, (std::vector<std::uint64_t>{103, 103, 104}));
  EXPECT_EQ(first.ids, (std::vector<std::uint16_t>{0, 1, 5, 300}));
  const auto second = decode<std::uint32_t>(raw, 1, shape);
  EXPECT_EQ(second.row_ends, (std::vector<std::uint64_t>{0, 2, 2}));
  EXPECT_EQ(second.ids, (std::vector<std::uint32_t>{7, 9}));
  EXPECT_EQ(second.values, (std::vector<std::uint8_t>{2, 9}));
}

TEST(RowBlock, TakesARangeOfRowsWhoseEntriesDoNotBeginAtNought) {
  const CsrRows rows = three_rows();
  const CsrView last = rows.view(2, 3);
  ByteBuffer raw;
  encode_row_block({&last, 1}, kStars, 2, raw);
  EXPECT_EQ(decode<std::uint16_t>(raw, 0, kStars).ids, (std::vector<std::uint16_t>{300}));
}

TEST(RowBlock, GivesBackColumnsWithEveryInstructionSet) {
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

TEST(RowBlock, GivesBackTheLastColumnThatThereCanBe) {
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

TEST(RowBlock, KeepsEveryValueType) {
  const CsrRows counts{{0, 2}, {3, 4}, {1.0f, 65535.0f}};
  const MatrixShape u16{.column_count = 5, .value_type = ValueType::u16};
  EXPECT_EQ(decode<std::uint32_t>(encode(counts, u16), 0, u16).values,
            (std::vector<std::uint8_t>{1, 0, 255, 255}));
  const MatrixShape f32{.column_count = 5, .value_type = ValueType::f32};
  const auto floats = decode<std::uint32_t>(encode(counts, f32), 0, f32).values;
  EXPECT_EQ(load_little<float>(floats.data() + 4), 65535.0f);
  const MatrixShape none{.column_count = 5, .value_type = ValueType::none};
  EXPECT_TRUE(decode<std::uint32_t>(encode({{0, 2}, {3, 4}, {1.0f, 1.0f}}, none), 0, none).values.empty());
  const MatrixShape tenths{.column_count = 5, .value_type = ValueType::u8, .scale = 0.1};
  EXPECT_EQ(decode<std::uint32_t>(encode({{0, 1}, {0}, {0.3f}}, tenths), 0, tenths).values[0], 3);
}

TEST(RowBlock, StoresOnesWhereTheMatrixHasNoValues) {
  EXPECT_EQ(decode<std::uint32_t>(encode({{0, 2}, {3, 4}, {}}, kStars), 0, kStars).values,
            (std::vector<std::uint8_t>{2, 2}));
}

TEST(RowBlock, RefusesToRoundAValue) {
  for (const float value : {0.25f, -0.5f, 128.0f, std::numeric_limits<float>::quiet_NaN()})
    EXPECT_THROW(static_cast<void>(encode({{0, 1}, {0}, {value}}, kStars)), Error) << value;
  const MatrixShape none{.column_count = 5, .value_type = ValueType::none};
  EXPECT_THROW(static_cast<void>(encode({{0, 1}, {0}, {2.0f}}, none)), Error);
  const MatrixShape f32{.column_count = 5, .value_type = ValueType::f32};
  EXPECT_THROW(static_cast<void>(encode({{0, 1}, {0}, {std::numeric_limits<float>::infinity()}}, f32)),
               Error);
}

TEST(RowBlock, RejectsABlockThatWasTruncated) {
  const ByteBuffer raw = encode(three_rows(), kStars);
  for (std::size_t bytes = 0; bytes < raw.size(); ++bytes)
    EXPECT_NE(fault_of(Bytes(raw).first(bytes), kStars), "") << bytes;
  ByteBuffer longer = raw;
  longer.push_back(0);
  EXPECT_NE(fault_of(longer, kStars), "");
}

TEST(RowBlock, RejectsAnotherVersion) {
  ByteBuffer raw = encode(three_rows(), kStars);
  raw[4] = 2;
  EXPECT_NE(fault_of(raw, kStars).find("version 2, this reader knows version 1"), std::string::npos);
}

TEST(RowBlock, NeverGivesAColumnThatIsNotThereForAnyFlippedBit) {
  const CsrRows rows = random_rows(12, 2000, 400);
  const MatrixShape shape{.column_count = 2000, .value_type = ValueType::none};
  const ByteBuffer raw = encode(rows, shape);
  for_each_simd_target([&](const char* target) {
    for (std::size_t bit = 0; bit < raw.size() * 8; ++bit) {
      ByteBuffer flipped = raw;
      flipped[bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
      try {
        const auto found = decode<std::uint16_t>(flipped, 0, shape);
        for (const std::uint16_t id : found.ids)
          ASSERT_LT(id, shape.column_count) << target << " bit " << bit;
      } catch (const Error& error) {
        ASSERT_EQ(error.code(), ErrorCode::bad_data);
      }
    }
  });
}

TEST(RowBlock, RejectsColumnsAtOrAboveTheMatrixWidth) {
  MatrixShape narrower = kStars;
  narrower.column_count = 300;
  const ByteBuffer raw = encode(three_rows(), kStars);
  EXPECT_NE(fault_of(raw, narrower).find("column 300 of 300"), std::string::npos);
}

TEST(RowBlock, RejectsAHeaderThatDoesNotFitItsPlanes) {
  const ByteBuffer good = encode(three_rows(), kStars);
  for (const std::size_t at : {24, 32, 40, 48}) {  // entries, longest row, bytes of lengths, bytes of columns
    for (const std::uint64_t number : {std::uint64_t{0}, std::uint64_t{9}, UINT64_MAX}) {
      ByteBuffer raw = good;
      store_little(raw.data() + at, number);
      EXPECT_NE(fault_of(raw, kStars), "") << at << " " << number;
    }
  }
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
