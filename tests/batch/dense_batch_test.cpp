#include <gtest/gtest.h>

#include "batch/sparse_values.h"
#include "chunkhit/error.h"
#include "support/stored_rows.h"

namespace chunkhit {
namespace {

constexpr std::size_t kColumns = 6;

/// A buffer for floats that holds what an earlier user left there.
struct Floats {
  explicit Floats(std::size_t rows) : cells(rows * kColumns, 9.0f) {}
  std::uint8_t* data() { return reinterpret_cast<std::uint8_t*>(cells.data()); }
  std::vector<float> cells;
};

const EntryValues kHalfStars({2, ValueType::u8, 0.5});
using U8Row = RowBytes<std::uint16_t, std::uint8_t>;

constexpr std::uint64_t kMaxEntries = 8;
using Rows = std::vector<StoredRow>;

TEST(DenseBatch, HoldsTheEntriesOfItsRowsAndZeros) {
  Floats floats(2);
  DenseBatch batch(SparseFormat::dense_f32, 2, kColumns, kMaxEntries, floats.data());
  const U8Row none({}, {}), some({0, 5}, {2, 3});
  batch.replace(Rows{none.row(), some.row()}, kHalfStars);
  EXPECT_EQ(floats.cells, (std::vector<float>{0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1.5f}));
  EXPECT_TRUE(batch.is_clean());
}

TEST(DenseBatch, ClearsWhatTheBatchBeforeSet) {
  Floats floats(2);
  DenseBatch batch(SparseFormat::dense_f32, 2, kColumns, kMaxEntries, floats.data());
  const U8Row first({0, 2, 5}, {2, 3, 4}), second({2}, {8});
  batch.replace(Rows{first.row(), first.row()}, kHalfStars);
  batch.replace(Rows{second.row()}, kHalfStars);
  EXPECT_EQ(floats.cells, (std::vector<float>{0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  batch.replace({}, kHalfStars);
  EXPECT_EQ(floats.cells, std::vector<float>(2 * kColumns, 0));
}

TEST(DenseBatch, ClearsEverythingOnceSomebodyElseWroteToIt) {
  Floats floats(2);
  DenseBatch batch(SparseFormat::dense_f32, 2, kColumns, kMaxEntries, floats.data());
  const U8Row first({1}, {2}), second({0}, {2});
  batch.replace(Rows{first.row()}, kHalfStars);
  floats.cells[4] = 7;
  EXPECT_FALSE(batch.is_clean());
  batch.spoil();
  batch.replace(Rows{first.row(), second.row()}, kHalfStars);
  EXPECT_EQ(floats.cells, (std::vector<float>{0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0}));
}

TEST(DenseBatch, ClearsEveryByteOfBuffersThatBeginAndEndAnywhere) {
  for (std::size_t begin = 0; begin < 70; begin += 3)
    for (const std::size_t columns : {std::size_t{1}, std::size_t{63}, std::size_t{64}, std::size_t{1000}}) {
      std::vector<std::uint8_t> bytes(begin + columns + 1, 77);
      DenseBatch batch(SparseFormat::dense_u8, 1, columns, kMaxEntries, bytes.data() + begin);
      batch.replace({}, kHalfStars);
      EXPECT_TRUE(std::all_of(bytes.begin() + static_cast<std::ptrdiff_t>(begin), bytes.end() - 1,
                              [](std::uint8_t byte) { return byte == 0; }));
      EXPECT_EQ(bytes.back(), 77);
      EXPECT_EQ(begin == 0 ? 77 : bytes[begin - 1], 77);
    }
}

#ifndef NDEBUG
TEST(DenseBatchDeathTest, EndsADebugBuildWhereSomebodyWroteToItInSecret) {
  Floats floats(2);
  DenseBatch batch(SparseFormat::dense_f32, 2, kColumns, kMaxEntries, floats.data());
  const U8Row first({1}, {2});
  batch.replace(Rows{first.row()}, kHalfStars);
  floats.cells[4] = 7;
  EXPECT_DEATH(batch.replace(Rows{first.row()}, kHalfStars), "is_clean");
}
#endif

TEST(DenseBatch, GivesHalfFloatsAndStoredNumbers) {
  const U8Row row({1, 5}, {2, 3}), other({0, 5}, {2, 3});
  std::vector<std::uint16_t> halves(kColumns, 77);
  DenseBatch half(SparseFormat::dense_f16, 1, kColumns, kMaxEntries,
                  reinterpret_cast<std::uint8_t*>(halves.data()));
  half.replace(Rows{row.row()}, kHalfStars);
  EXPECT_EQ(halves, (std::vector<std::uint16_t>{0, 0x3c00, 0, 0, 0, 0x3e00}));

  std::vector<std::uint8_t> bytes(kColumns, 77);
  DenseBatch stored(SparseFormat::dense_u8, 1, kColumns, kMaxEntries, bytes.data());
  stored.replace(Rows{row.row()}, kHalfStars);
  EXPECT_EQ(bytes, (std::vector<std::uint8_t>{0, 2, 0, 0, 0, 3}));
  stored.replace(Rows{other.row()}, EntryValues({2, ValueType::u8, 0.5, true}));
  EXPECT_EQ(bytes, (std::vector<std::uint8_t>{1, 0, 0, 0, 0, 1}));
}

// They became infinite without a word.
TEST(DenseBatch, RefusesNumbersThatNoHalfFloatHolds) {
  const EntryFormat format{2, ValueType::u8, 1000};
  EXPECT_THROW(check_half_values(65'520, format), Error);
  EXPECT_NO_THROW(check_half_values(65'519, format));
  EXPECT_THROW(check_half_values(40'000, EntryFormat{2, ValueType::u8, 1000, false, -2}), Error);
  EXPECT_NO_THROW(check_half_values(1e9F, EntryFormat{2, ValueType::u8, 1000, true}));
  EXPECT_NO_THROW(check_half_values(1e9F, EntryFormat{2, ValueType::u8, 1000, false, 1, RowNorm::l2}));
  std::vector<std::uint16_t> halves(kColumns);
  DenseBatch batch(SparseFormat::dense_f16, 1, kColumns, kMaxEntries,
                   reinterpret_cast<std::uint8_t*>(halves.data()));
  const U8Row fits({1, 5}, {2, 65}), too_large({1, 5}, {2, 66});
  batch.replace(Rows{fits.row()}, EntryValues(format));
  try {
    batch.replace(Rows{too_large.row()}, EntryValues(format));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    EXPECT_STREQ(
        error.what(),
        "`format`: dense_f16 holds numbers up to 65504, the values go up to 66000; take dense_f32, or a "
        "smaller scale");
  }
}

// Its cells stayed in all batches that followed, for callers who went on after the error.
TEST(DenseBatch, ClearsABatchThatFailed) {
  std::vector<std::uint16_t> halves(2 * kColumns);
  DenseBatch batch(SparseFormat::dense_f16, 2, kColumns, kMaxEntries,
                   reinterpret_cast<std::uint8_t*>(halves.data()));
  const EntryValues thousands({2, ValueType::u8, 1000});
  const U8Row fits({1, 5}, {2, 65}), too_large({0, 3}, {2, 66}), last({2}, {0});
  EXPECT_THROW(batch.replace(Rows{fits.row(), too_large.row()}, thousands), Error);
  batch.replace(Rows{last.row(), last.row()}, thousands);
  EXPECT_EQ(halves, std::vector<std::uint16_t>(2 * kColumns, 0));
}

TEST(DenseBatch, IsRefusedAboveOneGibibyte) {
  const EntryFormat format{4, ValueType::u8};
  EXPECT_NO_THROW(check_dense_batch(SparseFormat::dense_f32, 256, 1 << 20, format));
  EXPECT_NO_THROW(check_dense_batch(SparseFormat::csr, 1 << 20, 1 << 20, format));
  try {
    check_dense_batch(SparseFormat::dense_f32, 500, 3'000'000, format);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    EXPECT_STREQ(
        error.what(),
        "`format`: a dense batch of 500 rows and 3,000,000 columns has 6.0 GB, at most 1 GiB is handed out; "
        "take csr, or a smaller `batch_size`");
  }
}

TEST(DenseBatch, IsRefusedAsBytesOfWhatAreNone) {
  EXPECT_THROW(check_dense_batch(SparseFormat::dense_u8, 1, 1, {4, ValueType::f32}), Error);
  EXPECT_THROW(check_dense_batch(SparseFormat::dense_u8, 1, 1, {4, ValueType::u8, 1, false, 2}), Error);
  EXPECT_NO_THROW(check_dense_batch(SparseFormat::dense_u8, 1, 1, {4, ValueType::none}));
}

}  // namespace
}  // namespace chunkhit
