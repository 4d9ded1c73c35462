#include <gtest/gtest.h>

#include "support/matrix_parts.h"

namespace chunkhit {
namespace {

TEST(MatrixShard, GivesBackWhatWasWritten) {
  const TemporaryFolder folder;
  for (const char* filter : {"zstd", "none"})
    for (const ValueType type : {ValueType::none, ValueType::u8, ValueType::u16, ValueType::f32}) {
      const std::string path = folder.path("part.zst");
      const PartSpec spec = known_matrix_spec(known_shape(type, 2), filter, type == ValueType::u16 ? 2 : 0);
      write_known_matrices(path, spec, kRows);
      EXPECT_EQ(outcome_of(path, spec), "");
      const std::unique_ptr<ChunkReader> part = open_matrix_part(path);
      EXPECT_EQ(part->spec().rows().matrix, spec.rows().matrix);
      EXPECT_EQ(part->chunks().size(), 3u);
      EXPECT_EQ(part->samples().labels.ids, known_users(spec, kRows).labels.ids);
      EXPECT_EQ(part->samples().labels.values, known_users(spec, kRows).labels.values);
      EXPECT_NE(part->location(2).find("chunk 2 (rows 8-9)"), std::string::npos);
      EXPECT_FALSE(part->stored_raw(0)) << "rows are not their bytes";
    }
}

TEST(MatrixShard, MayHaveItemsWithoutNames) {
  const TemporaryFolder folder;
  PartSpec spec = known_matrix_spec(kHalfStars, "zstd");
  spec.rows().item_ids.clear();
  write_known_matrices(folder.path("part.zst"), spec, kRows);
  EXPECT_EQ(outcome_of(folder.path("part.zst"), spec), "");
  spec.rows().item_ids = {"only one"};
  EXPECT_NE(
      error_of([&] { write_known_matrices(folder.path("part.zst"), spec, kRows); }, ErrorCode::cannot_write)
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
    return error_of([&] { static_cast<void>(open_part(folder.path(name))); });
  };
  const auto open_rows = [&](const std::string& name) {
    return error_of([&] { static_cast<void>(open_matrix_part(folder.path(name))); });
  };
  EXPECT_NE(open_images("rows.zst").find("holds matrices, expected images"), std::string::npos);
  EXPECT_NE(open_rows("images.zst").find("holds images, expected matrices"), std::string::npos);
  EXPECT_NE(open_rows("images.h5").find("has no /X"), std::string::npos);
  write_hdf5(folder.path("rows.h5"), known_matrix_spec(kHalfStars, "none"));
  EXPECT_NE(open_images("rows.h5").find("holds matrices, expected images"), std::string::npos);
  EXPECT_TRUE(is_matrix_hdf5(folder.path("rows.h5")));
  EXPECT_FALSE(is_matrix_hdf5(folder.path("images.h5")));
  EXPECT_NE(error_of([&] {
              static_cast<void>(read_matrix_hdf5(InputFile(folder.path("images.h5"))));
            }).find("no /X"),
            std::string::npos);
}

TEST(MatrixShard, IsNotCreatedWithAShapeThatIsNone) {
  const TemporaryFolder folder;
  const auto error = [&](const PartSpec& spec, const char* kind = "shard") {
    return error_of([&] { static_cast<void>(container(kind).create(folder.path("part"), spec)); });
  };
  EXPECT_NE(error(known_matrix_spec(known_shape(ValueType::u8, 3), "zstd")), "");
  EXPECT_NE(error(known_matrix_spec(known_shape(ValueType::u8, 1, -1), "zstd")), "");
  EXPECT_NE(error(known_matrix_spec(known_shape(ValueType::f32, 1, 0.5), "zstd")), "");
  PartSpec wide = known_matrix_spec(kHalfStars, "zstd");
  wide.rows().matrix.column_count = std::uint64_t{1} << 32;
  EXPECT_NE(error(wide), "");
  EXPECT_NE(error(known_matrix_spec(kHalfStars, "photo")), "");
  EXPECT_NE(error(known_matrix_spec(kHalfStars, "none"), "hdf5"), "");
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
    EXPECT_GT(refused, flipped / 3);
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
  const auto error_with = [&](std::size_t at, char value) {
    std::string bytes = good;
    bytes[at] = value;
    const std::uint64_t hash = xxh3(as_bytes(bytes).first(4088));
    store_little(reinterpret_cast<std::uint8_t*>(bytes.data()) + 4088, hash);
    std::ofstream(path, std::ios::binary) << bytes;
    return outcome_of(path, spec);
  };
  EXPECT_EQ(error_with(28, 2), "");
  EXPECT_NE(error_with(28, 4).find("kind 4"), std::string::npos);
  EXPECT_NE(error_with(28, 1), "") << "matrices as images";
  EXPECT_NE(error_with(24, 2).find("version 2"), std::string::npos);
  EXPECT_NE(error_with(44, 4).find("value type"), std::string::npos);
  EXPECT_NE(error_with(45, 3).find("3 matrices"), std::string::npos);
  EXPECT_NE(error_with(46, 1), "");
  EXPECT_NE(error_with(48, 1).find("names of items"), std::string::npos);
  EXPECT_NE(error_with(63, static_cast<char>(0xbf)).find("scale"), std::string::npos);
}

}  // namespace
}  // namespace chunkhit
