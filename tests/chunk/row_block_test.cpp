#include "chunk/row_block.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "chunkhit/error.h"
#include "support/known_matrices.h"
#include "support/row_blocks.h"
#include "support/simd_targets.h"

namespace chunkhit {
namespace {

// Three rows by hand: {0: 0.5, 1: 5, 5: 3}, nothing, {300: 2}.
const MatrixShape kStars{.column_count = 301, .value_type = ValueType::u8, .scale = 0.5};

CsrRows three_rows() { return {{0, 3, 3, 4}, {0, 1, 5, 300}, {0.5f, 5.0f, 3.0f, 2.0f}}; }

TEST(RowBlock, LiesAsItsPageSays) {
  std::vector<std::uint8_t> expected{3, 0, 0, 0, 1, 1, 1,    0,     // rows, version, matrices, u8
                                     0, 0, 0, 0, 0, 0, 0xe0, 0x3f,  // scale 0.5
                                     0, 0, 0, 0, 0, 0, 0,    0,     // first row
                                     4, 0, 0, 0, 0, 0, 0,    0,     // entries
                                     3, 0, 0, 0, 0, 0, 0,    0,     // the longest row
                                     3, 0, 0, 0, 0, 0, 0,    0};    // bytes of lengths
  expected.resize(expected.size() + 16 * 8);                        // groups' steps and further bytes
  expected[48 + 4 * 8] = 3;  // 32 / 3, 36 / 3 and 40 / 3 have four binary digits
  expected[48 + 6 * 8] = 1;  // 32 has six
  expected[48 + 6 * 8 + 4] = 1;
  expected.insert(expected.end(), {3, 0, 1,        // lengths
                                   0, 0, 3,        // group 4: the steps of columns 0, 1, 5
                                   0xac, 2,        // group 6: of column 300
                                   1, 10, 6, 4});  // 0.5, 5, 3, 2
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

/// The three rows, rated at 1000, 996 and 1257, and at -2.
CsrRows three_timed_rows() {
  CsrRows rows = three_rows();
  rows.times = {1000, 996, 1257, -2};
  return rows;
}

TEST(RowBlock, HeaderAloneCountsTheEntries) {
  ByteBuffer raw = encode(three_rows(), kStars);
  const std::size_t bytes = row_block_header_bytes(kStars);
  EXPECT_EQ(decode_entry_count(Bytes(raw).first(bytes), kStars, 3), 4u);
  EXPECT_THROW(static_cast<void>(decode_entry_count(Bytes(raw).first(bytes - 1), kStars, 3)), Error);
  EXPECT_THROW(static_cast<void>(decode_entry_count(Bytes(raw).first(bytes), kStars, 4)), Error);
  raw[24 + 3] = 1;  // 2^24 and more in three rows of 301 columns
  EXPECT_THROW(static_cast<void>(decode_entry_count(Bytes(raw).first(bytes), kStars, 3)), Error);
}

TEST(RowBlock, HasTimesAsItsPageSays) {
  const ByteBuffer plain = encode(three_rows(), kStars);
  std::vector<std::uint8_t> expected(plain.begin(), plain.end());
  expected[4] = 2;  // version
  const auto add_plane = [&](std::initializer_list<std::uint8_t> bytes) {
    expected.insert(expected.end(), bytes);
  };
  add_plane({0xe4, 0, 0xfe});  // the rows' earliest times: 996, none, -2
  add_plane({0x03, 0, 0xff});
  for (int byte = 2; byte < 8; ++byte) add_plane({0, 0, 0xff});
  add_plane({4, 0, 5, 0});  // later by 4, 0, 261 and 0
  add_plane({0, 0, 1, 0});
  for (int byte = 2; byte < 8; ++byte) add_plane({0, 0, 0, 0});
  const ByteBuffer found = encode(three_timed_rows(), timed(kStars));
  EXPECT_EQ(std::vector<std::uint8_t>(found.begin(), found.end()), expected);
}

TEST(RowBlock, GivesBackTimesAsFarApartAsTheyCanBe) {
  CsrRows rows = random_rows(300, 5000, 900);  // more entries than are gathered at a time
  for (std::size_t at = 0; at < rows.nnz(); ++at)
    rows.times.push_back(at % 3 == 0 ? INT64_MIN + static_cast<std::int64_t>(at)
                                     : INT64_MAX - static_cast<std::int64_t>(at * at));
  const MatrixShape shape = timed({.column_count = 5000, .value_type = ValueType::none});
  const ByteBuffer raw = encode(rows, shape);
  EXPECT_EQ(decode<std::uint16_t>(raw, 0, shape, 77).times, rows.times);
  EXPECT_EQ(decode<std::uint32_t>(raw, 0, shape).ids, rows.indices);
}

TEST(RowBlock, RefusesTimesThatThePartHasNotOrThatAreCutOff) {
  const ByteBuffer raw = encode(three_timed_rows(), timed(kStars));
  EXPECT_NE(error_of(raw, kStars).find("version 2, expected 1 in a part without times"), std::string::npos);
  EXPECT_NE(error_of(encode(three_rows(), kStars), timed(kStars)).find("version 1, expected 2"),
            std::string::npos);
  EXPECT_NE(error_of(Bytes(raw).first(raw.size() - 1), timed(kStars)).find("the plane of times has 56 bytes"),
            std::string::npos);
  EXPECT_THROW(static_cast<void>(encode(three_rows(), timed(kStars))), Error);
}

TEST(RowBlock, HasTiesAsItsPageSaysWhereOneIsNotZero) {
  CsrRows rows = three_timed_rows();
  const ByteBuffer untied = encode(rows, timed(kStars));
  rows.ties = {0, 0, 0, 0};
  EXPECT_EQ(encode(rows, timed(kStars)), untied);
  rows.ties = {2, 0, 1, 0};
  ByteBuffer expected = untied;
  expected[4] = 3;  // version
  expected.insert(expected.end(), {2, 0, 1, 0});
  expected.insert(expected.end(), 12, 0);
  const ByteBuffer found = encode(rows, timed(kStars));
  EXPECT_EQ(found, expected);
  EXPECT_EQ(decode<std::uint16_t>(found, 0, timed(kStars), 9).ties, rows.ties);
  EXPECT_EQ(decode<std::uint16_t>(found, 0, timed(kStars)).times, rows.times);
  EXPECT_EQ(decode<std::uint32_t>(untied, 0, timed(kStars)).ties, (std::vector<std::uint32_t>{0, 0, 0, 0}));
  std::size_t bytes = 0;
  for (const Bytes piece : row_block_pieces(found, timed(kStars))) bytes += piece.size();
  EXPECT_EQ(bytes, found.size());
}

TEST(RowBlock, HasTiesOfBothMatricesWhereOneHasSome) {
  MatrixShape shape = timed(kStars);
  shape.matrix_count = 2;
  CsrRows tied = three_timed_rows();
  tied.ties = {1, 0, 0, 0};
  const CsrRows untied = three_timed_rows();
  for (const bool first : {true, false}) {
    const std::array<CsrView, 2> views{first ? tied.view() : untied.view(),
                                       first ? untied.view() : tied.view()};
    ByteBuffer raw;
    encode_row_block(views, shape, 0, raw);
    EXPECT_EQ(decode<std::uint32_t>(raw, first ? 0 : 1, shape).ties, tied.ties);
    EXPECT_EQ(decode<std::uint32_t>(raw, first ? 1 : 0, shape).ties, (std::vector<std::uint32_t>(4)));
  }
}

TEST(RowBlock, RejectsTiesThatAreCutOffOrBeyondEveryRow) {
  CsrRows rows = three_timed_rows();
  rows.ties = {2, 0, 1, 0};
  ByteBuffer raw = encode(rows, timed(kStars));
  EXPECT_NE(error_of(Bytes(raw).first(raw.size() - 1), timed(kStars)).find("the plane of ties has 16 bytes"),
            std::string::npos);
  EXPECT_NE(error_of(raw, kStars).find("version 3, expected 1"), std::string::npos);
  raw[raw.size() - 16] = 3;  // the longest row has 3 entries
  EXPECT_NE(error_of(raw, timed(kStars)).find("a position among equal times that is beyond every row"),
            std::string::npos);
  raw[4] = 2;
  EXPECT_NE(error_of(raw, timed(kStars)).find("16 bytes too many"), std::string::npos);
  raw[4] = 4;
  EXPECT_NE(error_of(raw, timed(kStars)).find("version 4, expected 2 or 3"), std::string::npos);
}

MatrixShape repeating(MatrixShape shape) {
  shape.has_times = shape.has_repeats = true;
  return shape;
}

TEST(RowBlock, RepeatsColumnsAsItsPageSays) {
  CsrRows rows{{0, 4, 4, 5}, {0, 5, 5, 6, 300}, {0.5F, 5, 3, 2, 1}};
  rows.times = {1000, 996, 1257, 996, -2};
  rows.ties = {0, 1, 0, 0, 0};
  const ByteBuffer found = encode(rows, repeating(kStars));
  EXPECT_EQ(found[4], 4);  // version
  std::vector<std::uint8_t> groups(16 * 8);
  groups[4 * 8] = 4;  // 32 / 4, 32 / 4, 52 / 4 and 52 / 4 have four binary digits
  groups[6 * 8] = 1;
  groups[6 * 8 + 4] = 1;
  const std::vector<std::uint8_t> planes{4,    0,  1,         // lengths
                                         0,    5,  0, 1,      // group 4: the steps of columns 0, 5, 5, 6
                                         0xac, 2,             // group 6: of column 300
                                         1,    10, 6, 4, 2};  // ratings
  EXPECT_TRUE(std::ranges::equal(Bytes(found).subspan(48, groups.size()), groups));
  EXPECT_TRUE(std::ranges::equal(Bytes(found).subspan(176, planes.size()), planes));
  EXPECT_EQ(found.size(), 176 + planes.size() + 8 * (3 + 5) + 4 * 5);
  EXPECT_EQ(decode<std::uint16_t>(found, 0, repeating(kStars)).ids,
            (std::vector<std::uint16_t>{0, 5, 5, 6, 300}));
  EXPECT_EQ(decode<std::uint32_t>(found, 0, repeating(kStars)).ties, rows.ties);
  EXPECT_EQ(decode<std::uint32_t>(found, 0, repeating(kStars)).times, rows.times);
}

TEST(RowBlock, HasARowThatIsLongerThanThereAreColumns) {
  const MatrixShape shape = repeating({.column_count = 2, .value_type = ValueType::none});
  CsrRows rows{{0, 100}, std::vector<std::uint32_t>(100), {}};
  std::fill(rows.indices.begin() + 60, rows.indices.end(), 1U);
  rows.times.resize(100);
  const ByteBuffer raw = encode(rows, shape);
  EXPECT_EQ(decode<std::uint32_t>(raw, 0, shape).ids, rows.indices);
  EXPECT_EQ(decode_entry_count(Bytes(raw).first(row_block_header_bytes(shape)), shape, 1), 100U);
  MatrixShape narrow = shape;
  narrow.column_count = 1;
  EXPECT_NE(error_of(raw, narrow).find("column 1 of 1"), std::string::npos);
  MatrixShape without = shape;
  without.has_repeats = false;
  EXPECT_NE(error_of(raw, without).find("version 4, expected 2 or 3 in a part with times"),
            std::string::npos);
  without.has_times = false;
  EXPECT_NE(error_of(raw, without).find("version 4, expected 1"), std::string::npos);
  EXPECT_NE(error_of(encode(three_timed_rows(), timed(kStars)), repeating(kStars))
                .find("version 2, expected 4 in a part whose rows repeat items"),
            std::string::npos);
  EXPECT_NE(error_of(Bytes(raw).first(raw.size() - 1), shape).find("the plane of ties"), std::string::npos);
}

TEST(RowBlock, TakesARangeOfRowsWhoseEntriesDoNotBeginAtNought) {
  const CsrRows rows = three_rows();
  const CsrView last = rows.view(2, 3);
  ByteBuffer raw;
  encode_row_block({&last, 1}, kStars, 2, raw);
  EXPECT_EQ(decode<std::uint16_t>(raw, 0, kStars).ids, (std::vector<std::uint16_t>{300}));
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
    EXPECT_NE(error_of(Bytes(raw).first(bytes), kStars), "") << bytes;
  ByteBuffer longer = raw;
  longer.push_back(0);
  EXPECT_NE(error_of(longer, kStars), "");
}

TEST(RowBlock, RejectsAnotherVersion) {
  ByteBuffer raw = encode(three_rows(), kStars);
  raw[4] = 3;
  EXPECT_NE(error_of(raw, kStars).find("version 3, expected 1 in a part without times"), std::string::npos);
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
  EXPECT_NE(error_of(raw, narrower).find("column 300 of 300"), std::string::npos);
}

/// Three rows with other counts of their groups: steps of 4, further bytes of 4, steps of 5 and further bytes
/// of 6, where 3, 0, 0 and 1 are right.
std::string error_of_groups(const std::array<std::uint32_t, 4>& counts, int more_bytes = 0) {
  ByteBuffer raw = encode(three_rows(), kStars);
  constexpr std::array<std::size_t, 4> kCaches{48 + 4 * 8, 48 + 4 * 8 + 4, 48 + 5 * 8, 48 + 6 * 8 + 4};
  for (std::size_t i = 0; i < counts.size(); ++i) store_little(raw.data() + kCaches[i], counts[i]);
  if (more_bytes > 0) raw.insert(raw.end() - 4, static_cast<std::size_t>(more_bytes), 0);
  if (more_bytes < 0) raw.erase(raw.end() - 4 + more_bytes, raw.end() - 4);
  std::string error;
  for_each_simd_target([&](const char* target) {
    const std::string found = error_of(raw, kStars);
    EXPECT_TRUE(error.empty() || error == found) << target << ": " << found;
    error = found;
  });
  return error;
}

TEST(RowBlock, RejectsGroupsThatDoNotHoldTheStepsOfTheirRows) {
  EXPECT_EQ(error_of_groups({3, 0, 0, 1}), "");
  EXPECT_NE(error_of_groups({2, 0, 1, 1}).find("a group ends early"), std::string::npos);
  EXPECT_NE(error_of_groups({3, 0, 0, 0}, -1).find("end early"), std::string::npos);
  EXPECT_NE(error_of_groups({3, 1, 0, 0}).find("a group has bytes too many"), std::string::npos);
  EXPECT_NE(error_of_groups({3, 0, 0, 2}, 1).find("a group has bytes too many"), std::string::npos);
  EXPECT_NE(error_of_groups({3, 0, 1, 1}, 1).find("its steps are not as many as its entries"),
            std::string::npos);
}

TEST(RowBlock, IsDividedIntoPiecesThatFillIt) {
  const CsrRows x = random_rows(60, 60000, 3000);
  const CsrRows held_out = random_rows(60, 60000, 900);
  const MatrixShape shape{.column_count = 60000, .matrix_count = 2, .value_type = ValueType::none};
  ByteBuffer raw;
  const std::vector<CsrView> matrices{x.view(), held_out.view()};
  encode_row_block(matrices, shape, 0, raw);
  const std::uint8_t* at = raw.data();
  const std::vector<Bytes> pieces = row_block_pieces(raw, shape);
  EXPECT_GT(pieces.size(), 12u);
  for (const Bytes piece : pieces) {
    EXPECT_EQ(piece.data(), at);
    EXPECT_FALSE(piece.empty());
    at += piece.size();
  }
  EXPECT_EQ(at, raw.data() + raw.size());
  EXPECT_EQ(row_block_pieces(encode(three_rows(), kStars), kStars).size(), 2u)
      << "header and lengths; the rest is too small to be divided";
}

TEST(RowBlock, RejectsAHeaderThatDoesNotFitItsPlanes) {
  const ByteBuffer good = encode(three_rows(), kStars);
  // Entries, longest row, bytes of lengths, steps of group 4, their further bytes.
  for (const std::size_t at : {24, 32, 40, 80, 84}) {
    for (const std::uint64_t number : {std::uint64_t{0}, std::uint64_t{9}, UINT64_MAX}) {
      ByteBuffer raw = good;
      store_little(raw.data() + at, number);
      if (raw == good) continue;
      EXPECT_NE(error_of(raw, kStars), "") << at << " " << number;
    }
  }
}

}  // namespace
}  // namespace chunkhit
