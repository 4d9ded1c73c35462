// manifest.json of a pack of matrices. Layout: schemas/matrix-manifest.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "manifest/manifest.h"
#include "types/value_type.h"

namespace chunkhit {

inline constexpr std::string_view kMatrixFormat = "chunkhit-matrix";
inline constexpr std::string_view kUsersName = "users.csv";
inline constexpr std::string_view kItemsName = "items.csv";

/// One matrix of a pack.
struct MatrixRecord {
  std::string name;  ///< "X", "held_out"
  std::uint64_t nnz = 0;
  std::uint64_t longest_row = 0;  ///< entries
};

/// An input file.
struct InputRecord {
  std::string file;         ///< its name without folders
  std::uint64_t bytes = 0;  ///< of a text undone from compression, of a matrix as the file lies; 0: not known
  std::uint64_t lines = 0;
  std::uint64_t blank_lines = 0;
  std::uint64_t comment_lines = 0;
  std::uint64_t header_lines = 0;
  std::uint64_t ratings = 0;
};

/// What is left after a step: users and items with at least one rating.
struct StepRecord {
  std::string name;
  std::uint64_t users = 0;
  std::uint64_t items = 0;
  std::uint64_t ratings = 0;
};

/// How often a value, or one from here up to the next entry's, is there.
struct ValueCount {
  float value = 0;
  std::uint64_t ratings = 0;
};

/// What became of the input, of all packs of a run.
struct RatingStats {
  std::vector<InputRecord> inputs;
  std::uint64_t bad_lines = 0;
  std::vector<std::pair<std::string, std::uint64_t>> reasons;  ///< of bad lines
  std::vector<StepRecord> steps;
  std::vector<std::pair<std::string, std::uint64_t>> left_out;  ///< by the split: what, how many
  std::vector<ValueCount> values;                               ///< of what is packed
};

/// What manifest.json of a pack of matrices holds.
struct MatrixManifest {
  std::uint64_t pack_id = 0;
  std::string tool;  ///< "pack-sparse 0.1.0"
  std::vector<SpecEntry> spec;
  std::uint64_t input_xxh3 = 0;  ///< of all bytes of the inputs, uncompressed
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  std::vector<MatrixRecord> matrices;  ///< X; held_out, where the rows have a second one
  ValueType value_type = ValueType::none;
  double scale = 1;
  std::string container;
  std::string codec;
  std::uint64_t chunk_rows = 0;  ///< in every chunk but a part's last; 0 where chunks are not rows
  std::vector<std::string> label_columns;
  std::vector<PartRecord> parts;  ///< file, bytes, xxh3, rows = samples, chunks, stored_bytes
  FileRecord users;
  FileRecord items;
  RatingStats stats;
};

/// Writes JSON text that ends in its own hash. Equal manifests give equal bytes.
[[nodiscard]] std::string matrix_manifest_text(const MatrixManifest& manifest);

/// Reads and checks JSON text; `name` is for messages. Throws bad_data when the hash or a field is not right.
[[nodiscard]] MatrixManifest parse_matrix_manifest(std::string_view text, const std::string& name);

/// Detects the format that a manifest says it has: "chunkhit-images", "chunkhit-matrix"; throws bad_data when
/// it is no sealed JSON.
[[nodiscard]] std::string manifest_format(std::string_view text, const std::string& name);

}  // namespace chunkhit
