#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "support/matrix_parts.h"

namespace chunkhit {
namespace {

TEST(MatrixHdf5, GivesBackWhatWasWritten) {
  const TemporaryFolder folder;
  for (const MatrixShape& shape :
       {known_shape(ValueType::none, 1), known_shape(ValueType::u8, 2, 0.5),
        known_shape(ValueType::u16, 2, 0.1), known_shape(ValueType::f32, 1), known_shape(ValueType::u16, 1),
        timed(known_shape(ValueType::none, 1)), timed(known_shape(ValueType::u16, 2))}) {
    const std::string path = folder.path("part.h5");
    const PartSpec spec = known_matrix_spec(shape, "none", shape.value_type == ValueType::u16 ? 2 : 0);
    std::vector<std::uint64_t> counts(kKnownColumns, 3);
    write_hdf5(path, spec, {.item_counts = counts});
    const Hdf5Matrix matrix = read_matrix_hdf5(InputFile(path));
    ASSERT_TRUE(matrix.spec);
    EXPECT_EQ(matrix.spec->rows().matrix, shape);
    EXPECT_EQ(matrix.spec->chunk_samples, kKnownChunkRows);
    EXPECT_EQ(matrix.spec->pack_id, spec.pack_id);
    EXPECT_EQ(matrix.spec->label_columns, spec.label_columns);
    EXPECT_EQ(matrix.column_names, spec.rows().item_ids);
    EXPECT_EQ(matrix.item_counts, counts);
    expect_known(matrix.x, shape, 0);
    ASSERT_EQ(matrix.held_out.has_value(), shape.matrix_count == 2);
    if (matrix.held_out) expect_known(*matrix.held_out, shape, 1);
    const PartSamples expected = known_users(spec, kRows);
    EXPECT_EQ(matrix.samples.rows, expected.rows);
    EXPECT_EQ(matrix.samples.row_ids.text, expected.row_ids.text);
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

TEST(MatrixHdf5, ReportsTheHashOfItsTrailer) {
  const TemporaryFolder folder;
  const PartSpec spec = known_matrix_spec(known_shape(ValueType::u8, 1), "none");
  MatrixHdf5Writer writer(folder.path("part.h5"), spec);
  writer.append(known_rows(spec.rows().matrix, 0, 0, kRows).view(), {});
  const PartReport report = writer.finish(known_users(spec, kRows));
  const std::string bytes = file_text(folder.path("part.h5"));
  const Bytes trailer = as_bytes(bytes).last(64);
  EXPECT_EQ(report.xxh3, xxh3(trailer.first(56)));
  EXPECT_EQ(load_little<std::uint64_t>(trailer.data() + 24), bytes.size() - 64);
  EXPECT_EQ(load_little<std::uint64_t>(trailer.data() + 48), xxh3(as_bytes(bytes).first(bytes.size() - 64)));
  EXPECT_EQ(report.bytes, bytes.size());
  EXPECT_EQ(report.sample_count, kRows);
  EXPECT_EQ(report.chunk_count, 2u);
}

TEST(MatrixHdf5, WithAFlippedBitIsRejectedThoughNoPackKnowsItsHash) {
  const TemporaryFolder folder;
  const std::string path = folder.path("part.h5");
  write_hdf5(path, known_matrix_spec(kHalfStars, "none"));
  std::string bytes = file_text(path);
  const std::size_t step = bytes.size() / 300;
  for (std::size_t at = 0; at < bytes.size(); at += at + 64 < bytes.size() ? step : 1) {
    const auto flip = static_cast<char>(1 << at % 8);
    bytes[at] = static_cast<char>(bytes[at] ^ flip);
    std::ofstream(path, std::ios::binary) << bytes;
    EXPECT_THROW(static_cast<void>(open_matrix_part(path)), Error) << at;
    bytes[at] = static_cast<char>(bytes[at] ^ flip);
  }
  for (const std::size_t size : {bytes.size() - 1, bytes.size() - 63, bytes.size() / 2}) {
    std::ofstream(path, std::ios::binary) << bytes.substr(0, size);
    EXPECT_THROW(static_cast<void>(open_matrix_part(path)), Error) << size;
  }
}

TEST(MatrixHdf5, IsReadAsAnExternalFileOnceH5repackWroteIt) {
  const TemporaryFolder folder;
  const std::string path = folder.path("part.h5");
  const std::string moved = folder.path("moved.h5");
  write_hdf5(path, known_matrix_spec(kHalfStars, "none"));
  ASSERT_EQ(std::system(("h5repack " + path + " " + moved).c_str()), 0);
  EXPECT_EQ(open_matrix_part(moved)->samples().row_ids.text, open_matrix_part(path)->samples().row_ids.text);
  EXPECT_NE(open_matrix_part(moved)->hash_of_all(), open_matrix_part(path)->hash_of_all());
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
  PartSpec spec = known_matrix_spec(shape, "none");
  MatrixHdf5Writer writer(folder.path("part.h5"), spec);
  writer.append(rows.view(0, 2), {});
  writer.append(rows.view(2, 3), {});
  static_cast<void>(writer.finish(known_users(spec, 3)));
  const Hdf5Matrix matrix = read_matrix_hdf5(InputFile(folder.path("part.h5")));
  EXPECT_EQ(matrix.x.indptr, rows.indptr);
  EXPECT_EQ(matrix.x.indices, rows.indices);
  EXPECT_EQ(matrix.x.values, rows.values);
}

TEST(MatrixHdf5, RefusesTimesThatAreNotThoseOfTheRatings) {
  const TemporaryFolder folder;
  MatrixHdf5Writer writer(folder.path("part.h5"),
                          known_matrix_spec(timed(known_shape(ValueType::u8, 1)), "none"));
  const CsrRows rows{{0, 2}, {3, 4}, {1.0f, 2.0f}, {5}};
  EXPECT_NE(error_of([&] { writer.append(rows.view(), {}); }).find("1 times of 2 ratings"),
            std::string::npos);
}

TEST(MatrixHdf5, RefusesRowsThatAreNoCsr) {
  const TemporaryFolder folder;
  const PartSpec spec = known_matrix_spec(known_shape(ValueType::none, 1), "none");
  for (const CsrRows& rows : {CsrRows{{0, 1}, {700}, {}}, {{0, 2}, {5, 5}, {}}, {{0, 2}, {6, 5}, {}}}) {
    MatrixHdf5Writer writer(folder.path("part.h5"), spec);
    EXPECT_NE(error_of([&] { writer.append(rows.view(), {}); }).find("expected ascending columns below 700"),
              std::string::npos);
  }
}

TEST(MatrixHdf5, IsNotThereUnlessItWasFinished) {
  const TemporaryFolder folder;
  {
    MatrixHdf5Writer writer(folder.path("part.h5"), known_matrix_spec(kHalfStars, "none"));
    writer.append(known_rows(kHalfStars, 0, 0, 5).view(), known_rows(kHalfStars, 1, 0, 5).view());
    EXPECT_NE(error_of([&] { static_cast<void>(writer.finish({})); }, ErrorCode::cannot_write), "");
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace chunkhit
