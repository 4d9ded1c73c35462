#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "chunkhit/error.h"
#include "codec/zstd.h"
#include "store/part_index.h"
#include "support/known_matrices.h"

namespace chunkhit {
namespace {

PartSpec rows_spec(std::vector<std::string> item_ids = {}) {
  PartSpec spec;
  spec.samples.emplace<RowBlocks>().item_ids = std::move(item_ids);
  return spec;
}

/// The bytes of an index before they are compressed.
ByteBuffer encode(const PartSpec& spec, const std::vector<StoredChunk>& chunks, const PartSamples& samples) {
  const ByteBuffer compressed = spec.payload().encode_index(spec, chunks, samples);
  ByteBuffer all(zstd_content_bytes(compressed));
  decode_zstd(compressed, all);
  return all;
}

PartContents decode(Bytes index, const IndexLimits& limits = {}) {
  PartContents contents{
      .spec = rows_spec(), .chunks = {}, .samples = {}, .pieces = {}, .read_rows = {}, .trailer = {}};
  ByteBuffer compressed;
  encode_zstd({index}, 1, compressed);
  IndexCursor cursor(compressed);
  contents.spec.payload().decode_index(cursor, limits, contents);
  return contents;
}

std::string error_of(Bytes index) {
  try {
    static_cast<void>(decode(index));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_data);
    return error.what();
  }
  return "";
}

/// Three users whose ids are these, and no items, chunks or labels.
PartSamples three_users(const std::vector<std::string>& ids) {
  PartSamples samples;
  for (const std::string& id : ids) {
    samples.rows.push_back(samples.rows.size() * 300);
    samples.row_ids.add(id);
    samples.labels.ids.push_back(-1);
  }
  return samples;
}

TEST(MatrixIndex, GivesBackIdsAsTheyWereWritten) {
  const std::vector<std::vector<std::string>> lists{{"1", "301", "601"},
                                                    {"-7", "0", "9223372036854775807"},
                                                    {"-9223372036854775808", "18", "3"},
                                                    {"7", "007", "+7"},
                                                    {"9223372036854775808", "1", "2"},
                                                    {"", "5", "é 5"},
                                                    {}};
  for (const std::vector<std::string>& ids : lists) {
    const PartContents found = decode(encode(rows_spec(ids), {}, three_users(ids)));
    EXPECT_EQ(found.samples.row_ids.text, three_users(ids).row_ids.text);
    EXPECT_EQ(found.samples.row_ids.ends, three_users(ids).row_ids.ends);
    EXPECT_EQ(found.samples.rows, three_users(ids).rows);
    EXPECT_EQ(found.samples.labels.ids, three_users(ids).labels.ids);
    EXPECT_EQ(found.spec.rows().item_ids, ids);
  }
}

TEST(MatrixIndex, TakesOneByteForAnIdThatFollowsFromTheUsersNumber) {
  PartSamples samples;
  for (std::uint64_t row = 0; row < 1000; ++row) {
    samples.rows.push_back(row);
    samples.row_ids.add(std::to_string(row + 1));
    samples.labels.ids.push_back(-1);
  }
  // Five counts; four lists with their widths and forms; labels 1, rows 2, ids 1 byte each.
  EXPECT_EQ(encode(rows_spec(), {}, samples).size(), 5 * 8 + (2 + 3 * 2) * 8 + 1000 * (1 + 2 + 1));
}

TEST(MatrixIndex, ThatNeedsMoreThanIsGivenNamesTheBytesBeforeItTakesThem) {
  // A byte of the index each, and many times that in memory.
  const ByteBuffer index = encode(rows_spec(std::vector<std::string>(1'000'000)), {}, {});
  try {
    static_cast<void>(decode(index, {.memory_bytes = 10'000'000}));
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    EXPECT_NE(std::string(error.what()).find("need 5"), std::string::npos) << error.what();
  }
  const PartContents found = decode(index, {.memory_bytes = 100'000'000});
  EXPECT_EQ(found.spec.rows().item_ids.size(), 1'000'000u);
}

TEST(MatrixIndex, ThatClaimsMoreThanItsFileCanHoldIsRefused) {
  const ByteBuffer index = encode(rows_spec(std::vector<std::string>(100'000)), {}, {});
  try {
    static_cast<void>(decode(index, {.file_bytes = 64}));
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_data);
    EXPECT_NE(std::string(error.what()).find("bytes in a file of 64"), std::string::npos) << error.what();
  }
}

TEST(MatrixIndex, GivesBackLabelsOfEveryKind) {
  PartSamples samples = three_users({"a", "b", "c"});
  samples.labels.ids = {-1, std::numeric_limits<std::int64_t>::max(),
                        std::numeric_limits<std::int64_t>::min()};
  EXPECT_EQ(decode(encode(rows_spec(), {}, samples)).samples.labels.ids, samples.labels.ids);
  samples.labels.ids.clear();
  samples.labels.values = {0.5f, -1.0f, 2.0f};
  PartSpec spec = rows_spec();
  spec.label_columns = {"12"};
  const PartContents found = decode(encode(spec, {}, samples));
  EXPECT_EQ(found.samples.labels.values, samples.labels.values);
  EXPECT_EQ(found.spec.label_columns, spec.label_columns);
}

TEST(MatrixIndex, RejectsAnIndexThatWasTruncatedOrIsTooLong) {
  const PartSpec spec = known_matrix_spec(known_shape(ValueType::u8, 1), "zstd", 2);
  const ByteBuffer index = encode(spec, std::vector<StoredChunk>(2), known_users(spec, 5));
  EXPECT_EQ(error_of(index), "");
  for (std::size_t bytes = 0; bytes < index.size(); ++bytes)
    EXPECT_NE(error_of(Bytes(index).first(bytes)), "") << bytes;
  ByteBuffer longer = index;
  longer.push_back(0);
  EXPECT_NE(error_of(longer).find("1 bytes too many"), std::string::npos);
}

TEST(MatrixIndex, RejectsCountsThatNoBytesStandFor) {
  const ByteBuffer index = encode(rows_spec(), {}, three_users({"1", "2", "3"}));
  for (std::size_t at = 0; at < 5 * 8; at += 8)  // chunks, rows, kind of labels, label columns, items
    for (const std::uint64_t number : {std::uint64_t{2}, std::uint64_t{1} << 60, UINT64_MAX}) {
      ByteBuffer wrong = index;
      store_little(wrong.data() + at, number);
      EXPECT_NE(error_of(wrong), "") << at << " " << number;
    }
}

TEST(MatrixIndex, RejectsWidthsAndFormsThatAreNone) {
  const ByteBuffer index = encode(rows_spec(), {}, three_users({"1", "2", "3"}));
  const std::size_t labels_at = 5 * 8;
  const std::size_t rows_at = labels_at + 8 + 3;
  const std::size_t ids_at = rows_at + 8 + 3 * 2;  // up to 600: two bytes
  for (const auto& [at, number] :
       {std::pair{labels_at, 0}, {labels_at, 9}, {rows_at, 0}, {rows_at, 255}, {ids_at, 2}}) {
    ByteBuffer wrong = index;
    store_little(wrong.data() + at, static_cast<std::uint64_t>(number));
    const std::string error = error_of(wrong);
    EXPECT_NE(error.find(at == ids_at ? "ids of form 2" : "expected 1 to 8"), std::string::npos) << error;
  }
}

TEST(MatrixIndex, EndsInNamesOrAnErrorForAnyFlippedBit) {
  const PartSpec spec = known_matrix_spec(known_shape(ValueType::u8, 1), "zstd", 1);
  const ByteBuffer index = encode(spec, std::vector<StoredChunk>(1), known_users(spec, 4));
  for (std::size_t bit = 0; bit < index.size() * 8; ++bit) {
    ByteBuffer flipped = index;
    flipped[bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
    try {
      const PartContents found = decode(flipped);
      const TextList& ids = found.samples.row_ids;
      EXPECT_EQ(ids.size(), found.samples.rows.size());
      EXPECT_EQ(ids.size() == 0 ? 0 : ids.ends.back(), ids.text.size());
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_data);
    }
  }
}

}  // namespace
}  // namespace chunkhit
