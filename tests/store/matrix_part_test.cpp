#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "base/file.h"
#include "chunkhit/error.h"
#include "store/hdf5_matrix.h"
#include "support/known_matrices.h"
#include "support/known_parts.h"
#include "support/temporary_folder.h"

namespace chunkhit {
namespace {

constexpr std::uint64_t kRows = 10;
const MatrixShape kHalfStars = known_shape(ValueType::u8, 2, 0.5);

std::string fault_of(const std::function<void()>& step, ErrorCode code = ErrorCode::bad_data) {
  try {
    step();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return "";
}

std::string file_text(const std::string& path) { return std::string(as_text(read_file(path, 1 << 30))); }

void write_hdf5(const std::string& path, const PartSpec& spec, MatrixHdf5Options options = {}) {
  MatrixHdf5Writer writer(path, spec, std::move(options));
  for (std::uint64_t first = 0; first < kRows; first += 5)
    writer.append(known_rows(*spec.matrix, 0, first, 5).view(), known_rows(*spec.matrix, 1, first, 5).view());
  static_cast<void>(writer.finish(known_users(spec, kRows)));
}

std::vector<float> values_of(const CsrRows& rows) {
  return rows.values.empty() ? std::vector<float>(rows.nnz(), 1.0f) : rows.values;
}

void expect_known(const CsrRows& found, const MatrixShape& shape, int matrix) {
  const CsrRows expected = known_rows(shape, matrix, 0, kRows);
  EXPECT_EQ(found.indptr, expected.indptr);
  EXPECT_EQ(found.indices, expected.indices);
  EXPECT_EQ(values_of(found), values_of(expected));
}

using Blocks = std::vector<ByteBuffer>;

Blocks known_blocks(const PartSpec& spec) {
  Blocks blocks;
  for (std::uint64_t first = 0; first < kRows; first += kKnownChunkRows)
    blocks.push_back(known_row_block(spec, first, std::min(kKnownChunkRows, kRows - first)));
  return blocks;
}

/// What a damaged shard of matrices gives: "" for the known rows, or the Error's text.
std::string outcome_of(const std::string& path, const PartSpec& spec, const Blocks& blocks) {
  return fault_of([&] {
    const std::unique_ptr<ChunkReader> part = open_matrix_part(path);
    const PartSamples expected = known_users(spec, kRows);
    EXPECT_EQ(part->samples().files.text, expected.files.text);
    EXPECT_EQ(part->samples().rows, expected.rows);
    EXPECT_EQ(part->spec().classes, spec.classes);
    ByteBuffer stored;
    for (std::size_t i = 0; i < part->chunks().size(); ++i) {
      const StoredChunk& chunk = part->chunks()[i];
      ByteBuffer raw(chunk.raw_bytes);
      part->fetch(i, stored);
      decode_chunk(*part, i, stored, raw);
      EXPECT_EQ(raw, blocks.at(i));
    }
  });
}

std::string outcome_of(const std::string& path, const PartSpec& spec) {
  return outcome_of(path, spec, known_blocks(spec));
}

TEST(MatrixShard, GivesBackWhatWasWritten) {
  const TemporaryFolder folder;
  for (const char* filter : {"zstd", "none"})
    for (const ValueType type : {ValueType::none, ValueType::u8, ValueType::u16, ValueType::f32}) {
      const std::string path = folder.path("part.zst");
      const PartSpec spec = known_matrix_spec(known_shape(type, 2), filter, type == ValueType::u16 ? 2 : 0);
      write_known_matrices(path, spec, kRows);
      EXPECT_EQ(outcome_of(path, spec), "");
      const std::unique_ptr<ChunkReader> part = open_matrix_part(path);
      EXPECT_EQ(part->spec().matrix, spec.matrix);
      EXPECT_EQ(part->chunks().size(), 3u);
      EXPECT_EQ(part->samples().labels.ids, known_users(spec, kRows).labels.ids);
      EXPECT_EQ(part->samples().labels.values, known_users(spec, kRows).labels.values);
      EXPECT_NE(part->place(2).find("chunk 2 (rows 8-9)"), std::string::npos);
      EXPECT_FALSE(part->stored_raw(0)) << "rows are not their bytes";
    }
}

TEST(MatrixShard, MayHaveItemsWithoutNames) {
  const TemporaryFolder folder;
  PartSpec spec = known_matrix_spec(kHalfStars, "zstd");
  spec.classes.clear();
  write_known_matrices(folder.path("part.zst"), spec, kRows);
  EXPECT_EQ(outcome_of(folder.path("part.zst"), spec), "");
  spec.classes = {"only one"};
  EXPECT_NE(
      fault_of([&] { write_known_matrices(folder.path("part.zst"), spec, kRows); }, ErrorCode::cannot_write)
          .find("names of items: 1, expected 700"),
      std::string::npos);
}

TEST(MatrixShard, IsRefusedWhereImagesAreExpectedAndTheOtherWayRound) {
  const TemporaryFolder folder;
  write_known_matrices(folder.path("rows.zst"), known_matrix_spec(kHalfStars, "zstd"), kRows);
  write_known_part(container("shard"), folder.path("images.zst"), known_spec({8, 7, 3, Layout::nhwc}, "zstd"),
                   4);
  write_known_part(container("hdf5"), folder.path("images.h5"), known_spec({8, 7, 3, Layout::nhwc}, "none"),
                   4);
  const auto open_images = [&](const std::string& name) {
    return fault_of([&] { static_cast<void>(open_part(folder.path(name))); });
  };
  const auto open_rows = [&](const std::string& name) {
    return fault_of([&] { static_cast<void>(open_matrix_part(folder.path(name))); });
  };
  EXPECT_NE(open_images("rows.zst").find("holds matrices, expected images"), std::string::npos);
  EXPECT_NE(open_rows("images.zst").find("holds images, expected matrices"), std::string::npos);
  EXPECT_NE(open_rows("images.h5").find("holds no /X, expected matrices"), std::string::npos);
  write_hdf5(folder.path("rows.h5"), known_matrix_spec(kHalfStars, "none"));
  write_hdf5(folder.path("dense.h5"), known_matrix_spec(kHalfStars, "none"), {.layout = MatrixLayout::dense});
  for (const char* name : {"rows.h5", "dense.h5"}) {
    EXPECT_NE(open_images(name).find("holds matrices, expected images"), std::string::npos) << name;
    EXPECT_TRUE(is_matrix_hdf5(folder.path(name)));
  }
  EXPECT_FALSE(is_matrix_hdf5(folder.path("images.h5")));
  EXPECT_NE(
      fault_of([&] { static_cast<void>(read_matrix_hdf5(folder.path("images.h5"))); }).find("no matrix /X"),
      std::string::npos);
}

TEST(MatrixShard, IsNotCreatedWithAShapeThatIsNone) {
  const TemporaryFolder folder;
  const auto fault = [&](const PartSpec& spec, const char* kind = "shard") {
    return fault_of([&] { static_cast<void>(container(kind).create(folder.path("part"), spec)); });
  };
  EXPECT_NE(fault(known_matrix_spec(known_shape(ValueType::u8, 3), "zstd")), "");
  EXPECT_NE(fault(known_matrix_spec(known_shape(ValueType::u8, 1, -1), "zstd")), "");
  EXPECT_NE(fault(known_matrix_spec(known_shape(ValueType::f32, 1, 0.5), "zstd")), "");
  PartSpec wide = known_matrix_spec(kHalfStars, "zstd");
  wide.matrix->column_count = std::uint64_t{1} << 32;
  EXPECT_NE(fault(wide), "");
  EXPECT_NE(fault(known_matrix_spec(kHalfStars, "photo")), "");
  EXPECT_NE(fault(known_matrix_spec(kHalfStars, "none"), "hdf5"), "");
}

TEST(DamagedMatrixShard, WithAFlippedBitIsRefusedOrReadRight) {
  const TemporaryFolder folder;
  const std::string path = folder.path("part.zst");
  for (const char* filter : {"zstd", "none"}) {
    PartSpec spec = known_matrix_spec(kHalfStars, filter);
    write_known_matrices(path, spec, kRows);
    std::string bytes = file_text(path);
    const Blocks blocks = known_blocks(spec);
    std::size_t flipped = 0;
    std::size_t refused = 0;
    for (std::size_t at = 0; at < bytes.size(); at += 23) {
      const auto flip = static_cast<char>(1 << mix_bits(at) % 8);
      bytes[at] = static_cast<char>(bytes[at] ^ flip);
      std::ofstream(path, std::ios::binary) << bytes;
      refused += outcome_of(path, spec, blocks).empty() ? 0 : 1;
      ++flipped;
      bytes[at] = static_cast<char>(bytes[at] ^ flip);
    }
    EXPECT_GT(refused, flipped / 2);
  }
}

TEST(DamagedMatrixShard, ThatEndsEarlyIsRefused) {
  const TemporaryFolder folder;
  const std::string path = folder.path("part.zst");
  const PartSpec spec = known_matrix_spec(kHalfStars, "zstd");
  write_known_matrices(path, spec, kRows);
  const std::string bytes = file_text(path);
  const Blocks blocks = known_blocks(spec);
  for (std::size_t size = 0; size < bytes.size(); size += 1 + bytes.size() / 300) {
    std::ofstream(path, std::ios::binary) << bytes.substr(0, size);
    EXPECT_NE(outcome_of(path, spec, blocks), "") << size;
  }
}

TEST(DamagedMatrixShard, OfAnotherKindOrVersionIsRefusedByName) {
  const TemporaryFolder folder;
  const std::string path = folder.path("part.zst");
  const PartSpec spec = known_matrix_spec(kHalfStars, "zstd");
  write_known_matrices(path, spec, kRows);
  const std::string good = file_text(path);
  const auto fault_with = [&](std::size_t at, char value) {
    std::string bytes = good;
    bytes[at] = value;
    const std::uint64_t hash = xxh3(as_bytes(bytes).first(4088));
    store_little(reinterpret_cast<std::uint8_t*>(bytes.data()) + 4088, hash);
    std::ofstream(path, std::ios::binary) << bytes;
    return outcome_of(path, spec);
  };
  EXPECT_EQ(fault_with(28, 2), "");
  EXPECT_NE(fault_with(28, 3).find("kind 3"), std::string::npos);
  EXPECT_NE(fault_with(28, 1), "") << "matrices as images";
  EXPECT_NE(fault_with(24, 2).find("version 2"), std::string::npos);
  EXPECT_NE(fault_with(44, 4).find("value type"), std::string::npos);
  EXPECT_NE(fault_with(45, 3).find("3 matrices"), std::string::npos);
  EXPECT_NE(fault_with(46, 1), "");
  EXPECT_NE(fault_with(48, 1).find("names of items"), std::string::npos);
  EXPECT_NE(fault_with(63, static_cast<char>(0xbf)).find("scale"), std::string::npos);
}

TEST(MatrixHdf5, GivesBackWhatWasWritten) {
  const TemporaryFolder folder;
  for (const MatrixLayout layout : {MatrixLayout::csr, MatrixLayout::dense})
    for (const MatrixShape& shape : {known_shape(ValueType::none, 1), known_shape(ValueType::u8, 2, 0.5),
                                     known_shape(ValueType::u16, 2, 0.1), known_shape(ValueType::f32, 1),
                                     known_shape(ValueType::u16, 1)}) {
      if (layout == MatrixLayout::dense && value_bytes(shape.value_type) > 1) continue;
      const std::string path = folder.path("part.h5");
      const PartSpec spec = known_matrix_spec(shape, "none", shape.value_type == ValueType::u16 ? 2 : 0);
      std::vector<std::uint64_t> counts(kKnownColumns, 3);
      write_hdf5(path, spec, {.layout = layout, .item_counts = counts});
      const Hdf5Matrix matrix = read_matrix_hdf5(path);
      ASSERT_TRUE(matrix.spec);
      EXPECT_EQ(matrix.spec->matrix, shape);
      EXPECT_EQ(matrix.spec->chunk_samples, kKnownChunkRows);
      EXPECT_EQ(matrix.spec->pack_id, spec.pack_id);
      EXPECT_EQ(matrix.spec->label_columns, spec.label_columns);
      EXPECT_EQ(matrix.column_names, spec.classes);
      EXPECT_EQ(matrix.item_counts, counts);
      expect_known(matrix.x, shape, 0);
      ASSERT_EQ(matrix.held_out.has_value(), shape.matrix_count == 2);
      if (matrix.held_out) expect_known(*matrix.held_out, shape, 1);
      const PartSamples expected = known_users(spec, kRows);
      EXPECT_EQ(matrix.samples.rows, expected.rows);
      EXPECT_EQ(matrix.samples.files.text, expected.files.text);
      EXPECT_EQ(matrix.samples.labels.ids, expected.labels.ids);
      EXPECT_EQ(matrix.samples.labels.values, expected.labels.values);
    }
}

TEST(MatrixHdf5, IsTheSameFileEachTime) {
  const TemporaryFolder folder;
  const PartSpec spec = known_matrix_spec(kHalfStars, "none");
  write_hdf5(folder.path("a.h5"), spec);
  write_hdf5(folder.path("b.h5"), spec);
  EXPECT_TRUE(file_text(folder.path("a.h5")) == file_text(folder.path("b.h5")));
}

TEST(MatrixHdf5, ReportsTheHashOfTheWholeFile) {
  const TemporaryFolder folder;
  const PartSpec spec = known_matrix_spec(known_shape(ValueType::u8, 1), "none");
  MatrixHdf5Writer writer(folder.path("part.h5"), spec);
  writer.append(known_rows(*spec.matrix, 0, 0, kRows).view(), {});
  const PartReport report = writer.finish(known_users(spec, kRows));
  EXPECT_EQ(report.xxh3, hash_file(folder.path("part.h5")));
  EXPECT_EQ(report.bytes, file_text(folder.path("part.h5")).size());
  EXPECT_EQ(report.sample_count, kRows);
  EXPECT_EQ(report.chunk_count, 2u);
}

TEST(MatrixHdf5, TakesMoreEntriesThanAChunkHas) {
  const TemporaryFolder folder;
  MatrixShape shape = known_shape(ValueType::u8, 1);
  shape.column_count = 50000;
  CsrRows rows;
  for (std::uint32_t row = 0; row < 3; ++row) {
    for (std::uint32_t column = row; column < 50000; ++column) {
      rows.indices.push_back(column);
      rows.values.push_back(static_cast<float>(1 + column % 250));
    }
    rows.indptr.push_back(rows.nnz());
  }
  for (const MatrixLayout layout : {MatrixLayout::csr, MatrixLayout::dense}) {
    PartSpec spec = known_matrix_spec(shape, "none");
    MatrixHdf5Writer writer(folder.path("part.h5"), spec, {.layout = layout});
    writer.append(rows.view(0, 2), {});
    writer.append(rows.view(2, 3), {});
    static_cast<void>(writer.finish(known_users(spec, 3)));
    const Hdf5Matrix matrix = read_matrix_hdf5(folder.path("part.h5"));
    EXPECT_EQ(matrix.x.indptr, rows.indptr);
    EXPECT_EQ(matrix.x.indices, rows.indices);
    EXPECT_EQ(matrix.x.values, rows.values);
  }
}

TEST(MatrixHdf5, RefusesWhatADenseMatrixCannotHold) {
  const TemporaryFolder folder;
  const auto fault = [&](const MatrixShape& shape, const CsrRows& rows, std::uint64_t most = 1 << 20) {
    return fault_of([&] {
      MatrixHdf5Writer writer(folder.path("part.h5"), known_matrix_spec(shape, "none"),
                              {.layout = MatrixLayout::dense, .most_dense_bytes = most});
      writer.append(rows.view(), {});
    });
  };
  const CsrRows one{{0, 1}, {3}, {1.0f}};
  EXPECT_EQ(fault(known_shape(ValueType::u8, 1), one), "");
  EXPECT_NE(fault(known_shape(ValueType::u16, 1), one).find("type u16 do not fit"), std::string::npos);
  EXPECT_NE(fault(known_shape(ValueType::u8, 1), {{0, 1}, {3}, {0.0f}}).find("rating of 0"),
            std::string::npos);
  EXPECT_NE(fault(known_shape(ValueType::u8, 1), {{0, 1}, {3}, {256.0f}}), "");
  EXPECT_NE(fault(known_shape(ValueType::u8, 1), one, 699).find("700 cells"), std::string::npos);
}

TEST(MatrixHdf5, RefusesRowsThatAreNoCsr) {
  const TemporaryFolder folder;
  const PartSpec spec = known_matrix_spec(known_shape(ValueType::none, 1), "none");
  for (const MatrixLayout layout : {MatrixLayout::csr, MatrixLayout::dense})
    for (const CsrRows& rows : {CsrRows{{0, 1}, {700}, {}}, {{0, 2}, {5, 5}, {}}, {{0, 2}, {6, 5}, {}}}) {
      MatrixHdf5Writer writer(folder.path("part.h5"), spec, {.layout = layout});
      EXPECT_NE(
          fault_of([&] { writer.append(rows.view(), {}); }).find("expected ascending columns below 700"),
          std::string::npos);
    }
}

TEST(MatrixHdf5, IsNotThereUnlessItWasFinished) {
  const TemporaryFolder folder;
  {
    MatrixHdf5Writer writer(folder.path("part.h5"), known_matrix_spec(kHalfStars, "none"));
    writer.append(known_rows(kHalfStars, 0, 0, 5).view(), known_rows(kHalfStars, 1, 0, 5).view());
    EXPECT_NE(fault_of([&] { static_cast<void>(writer.finish({})); }, ErrorCode::cannot_write), "");
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace chunkhit
