// Parts with ratings that every test knows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/random.h"
#include "codec/chunk_codec.h"
#include "store/part.h"

namespace chunkhit {

inline constexpr std::uint64_t kKnownColumns = 700;
inline constexpr std::uint64_t kKnownChunkRows = 4;

/// Whether user `row` rated item `column`, and in which matrix: 0 = X, 1 = held_out, 2 = none. Every fifth
/// user rated nothing, every third only rare items.
inline int known_matrix(std::uint64_t row, std::uint64_t column) {
  if (row % 5 == 4 || (row % 3 == 2 && column % 97 != 0)) return 2;
  const std::uint64_t bits = mix_bits((row << 32) + column);
  if (bits % 100 >= 30) return 2;
  return bits / 128 % 5 == 0 ? 1 : 0;
}

/// The stored number of a rating: 1 to 200.
inline std::uint64_t known_number(std::uint64_t row, std::uint64_t column) {
  return 1 + mix_bits(row * 1000 + column) % 200;
}

inline float known_rating(std::uint64_t row, std::uint64_t column, const MatrixShape& shape) {
  if (shape.value_type == ValueType::none) return 1;
  if (shape.value_type == ValueType::f32) return static_cast<float>(known_number(row, column)) / 3;
  const std::uint64_t far = shape.value_type == ValueType::u16 ? 300 : 1;
  return static_cast<float>(static_cast<double>(known_number(row, column) * far) * shape.scale);
}

/// Within some years of 1970 and of 2020.
inline std::int64_t known_time(std::uint64_t row, std::uint64_t column) {
  const auto later = static_cast<std::int64_t>(mix_bits(row * 7 + column * 1000) % 100'000'000);
  return (row % 2 == 0 ? 1'577'836'800 : -50'000'000) + later;
}

/// Gives rows [first, first + count) of a matrix. A part with one matrix has in it only what is in X.
inline CsrRows known_rows(const MatrixShape& shape, int matrix, std::uint64_t first, std::uint64_t count) {
  CsrRows rows;
  for (std::uint64_t row = first; row < first + count; ++row) {
    for (std::uint64_t column = 0; column < shape.column_count; ++column) {
      if (known_matrix(row, column) != matrix) continue;
      rows.indices.push_back(static_cast<std::uint32_t>(column));
      if (shape.value_type != ValueType::none) rows.values.push_back(known_rating(row, column, shape));
      if (shape.has_times) rows.times.push_back(known_time(row, column));
    }
    rows.indptr.push_back(rows.indices.size());
  }
  return rows;
}

inline MatrixShape known_shape(ValueType type, std::uint32_t matrices, double scale = 1) {
  return {.column_count = kKnownColumns, .matrix_count = matrices, .value_type = type, .scale = scale};
}

/// The same with times.
inline MatrixShape timed(MatrixShape shape) {
  shape.has_times = true;
  return shape;
}

inline PartSpec known_matrix_spec(const MatrixShape& shape, const std::string& filter,
                                  std::size_t label_columns = 0) {
  PartSpec spec;
  spec.samples.emplace<RowBlocks>().matrix = shape;
  spec.codec = filter;
  spec.chunk_samples = kKnownChunkRows;
  for (std::uint64_t column = 0; column < shape.column_count; ++column)
    spec.rows().item_ids.push_back("ítem " + std::to_string(column * column));
  for (std::size_t i = 0; i < label_columns; ++i)
    spec.label_columns.push_back("a/label " + std::to_string(i));
  spec.pack_id = 0x0123456789abcdefu;
  spec.part_index = 7;
  return spec;
}

/// Users with their own ids; labels are numbers where there are columns for them, and else whole or none.
inline PartSamples known_users(const PartSpec& spec, std::uint64_t count, bool has_labels = true) {
  PartSamples samples;
  for (std::uint64_t row = 0; row < count; ++row) {
    samples.rows.push_back(row * 2 + 1);
    samples.row_ids.add("user " + std::to_string(row * row));
    if (spec.label_columns.empty())
      samples.labels.ids.push_back(has_labels ? static_cast<std::int64_t>(row) * 5 : -1);
    for (std::size_t column = 0; column < spec.label_columns.size(); ++column)
      samples.labels.values.push_back(static_cast<float>(row) + static_cast<float>(column) / 4);
  }
  return samples;
}

inline ByteBuffer known_row_block(const PartSpec& spec, std::uint64_t first, std::uint64_t count) {
  std::vector<CsrRows> matrices;
  std::vector<CsrView> views;
  for (std::uint32_t i = 0; i < spec.rows().matrix.matrix_count; ++i)
    matrices.push_back(known_rows(spec.rows().matrix, static_cast<int>(i), first, count));
  for (const CsrRows& rows : matrices) views.push_back(rows.view());
  ByteBuffer raw;
  encode_row_block(views, spec.rows().matrix, first, raw);
  return raw;
}

/// Writes a shard of matrices as a pack does.
inline PartReport write_known_matrices(const std::string& path, const PartSpec& spec, std::uint64_t count) {
  const std::unique_ptr<ChunkWriter> writer = container("shard").create(path, spec);
  const ChunkCodec& codec = chunk_codec(spec.codec);
  for (std::uint64_t first = 0; first < count; first += spec.chunk_samples) {
    const std::uint64_t rows = std::min(spec.chunk_samples, count - first);
    const ByteBuffer raw = known_row_block(spec, first, rows);
    ByteBuffer stored;
    codec.encode(raw, {}, codec.default_level, false, stored);
    const bool filtered = codec.name != "none" && stored.size() < raw.size();
    const Bytes bytes = filtered ? Bytes(stored) : Bytes(raw);
    writer->append({bytes, raw.size(), rows, xxh3(bytes), filtered});
  }
  return writer->finish(known_users(spec, count));
}

}  // namespace chunkhit
