// Parts of matrices written and read by tests, and what is wrong with them in words.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "base/file.h"
#include "chunkhit/error.h"
#include "known_matrices.h"
#include "known_parts.h"
#include "store/hdf5/matrix.h"
#include "temporary_folder.h"

namespace chunkhit {

inline constexpr std::uint64_t kRows = 10;
inline const MatrixShape kHalfStars = known_shape(ValueType::u8, 2, 0.5);

inline std::string error_of(const std::function<void()>& step, ErrorCode code = ErrorCode::bad_data) {
  try {
    step();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return "";
}

inline std::string file_text(const std::string& path) {
  return std::string(as_text(read_file(path, 1 << 30)));
}

inline void write_hdf5(const std::string& path, const PartSpec& spec, MatrixHdf5Options options = {}) {
  MatrixHdf5Writer writer(path, spec, std::move(options));
  for (std::uint64_t first = 0; first < kRows; first += 5)
    writer.append(known_rows(spec.rows().matrix, 0, first, 5).view(),
                  known_rows(spec.rows().matrix, 1, first, 5).view());
  static_cast<void>(writer.finish(known_users(spec, kRows)));
}

inline std::vector<float> values_of(const CsrRows& rows) {
  return rows.values.empty() ? std::vector<float>(rows.nnz(), 1.0f) : rows.values;
}

inline void expect_known(const CsrRows& found, const MatrixShape& shape, int matrix) {
  const CsrRows expected = known_rows(shape, matrix, 0, kRows);
  EXPECT_EQ(found.indptr, expected.indptr);
  EXPECT_EQ(found.indices, expected.indices);
  EXPECT_EQ(values_of(found), values_of(expected));
  EXPECT_EQ(found.times, expected.times);
}

using Blocks = std::vector<ByteBuffer>;

inline Blocks known_blocks(const PartSpec& spec) {
  Blocks blocks;
  for (std::uint64_t first = 0; first < kRows; first += kKnownChunkRows)
    blocks.push_back(known_row_block(spec, first, std::min(kKnownChunkRows, kRows - first)));
  return blocks;
}

/// What a damaged shard of matrices gives: "" for the known rows, or the Error's text.
inline std::string outcome_of(const std::string& path, const PartSpec& spec, const Blocks& blocks) {
  return error_of([&] {
    const std::unique_ptr<ChunkReader> part = open_matrix_part(path);
    const PartSamples expected = known_users(spec, kRows);
    EXPECT_EQ(part->samples().row_ids.text, expected.row_ids.text);
    EXPECT_EQ(part->samples().rows, expected.rows);
    EXPECT_EQ(part->spec().rows().item_ids, spec.rows().item_ids);
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

inline std::string outcome_of(const std::string& path, const PartSpec& spec) {
  return outcome_of(path, spec, known_blocks(spec));
}

}  // namespace chunkhit
