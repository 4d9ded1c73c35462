// Writes one pack of matrices: items, parts, users, run and manifest; its statistics, shape and sizes of
// chunks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "chunkhit/pack.h"
#include "codec/chunk_codec.h"
#include "manifest/manifest.h"
#include "pack/output_pack.h"
#include "pack/ratings/column_table.h"
#include "pack/ratings/row_pipeline.h"
#include "ratings/id_map.h"
#include "ratings/rating_intake.h"
#include "ratings/rating_packs.h"
#include "store/hdf5/matrix.h"
#include "store/part.h"

namespace chunkhit {

/// Sums up what was read and what was made of it.
[[nodiscard]] RatingStats make_rating_stats(const ReadStats& read, const RatingPacks& packs);

/// Writes a part aside: of row blocks, or of rows.
using MatrixPartWriter = std::variant<std::unique_ptr<ChunkWriter>, std::unique_ptr<MatrixHdf5Writer>>;

/// What all packs of a run share.
struct MatrixRun {
  const PackSparseSpec& spec;
  const PackSparseOptions& options;
  const IdMap& users;
  const RatingPacks& packs;
  const std::vector<std::string>& item_ids;  ///< by column
  const LabelTable& labels;                  ///< by user
  const ColumnTables& columns;               ///< kept beside the ids
  const RatingStats& stats;
  const std::string& times;  ///< unit of the times that are kept, as MatrixManifest has it
  std::uint64_t input_xxh3 = 0;
  std::uint64_t work_bytes = UINT64_MAX;  ///< of rows at a time
  const RunFrame& frame;
  std::function<void(std::uint64_t rows)> on_rows;  ///< called for rows that were written
};

/// Rows of a row block: a power of two from 256 to 1,024 that comes near 256 KiB compressed, fewer where the
/// longest rows would be more than a chunk may hold.
[[nodiscard]] std::uint64_t plan_chunk_rows(const PackStats& stats, std::uint64_t row_count,
                                            const MatrixShape& shape);

/// What the matrices of a pack have in common.
[[nodiscard]] MatrixShape matrix_shape(const RatingPacks& packs, const PackRows& rows);

/// Names and counts of a pack's matrices.
[[nodiscard]] std::vector<PackMatrix> matrix_records(const PackRows& rows);

/// Writes one pack, or what is missing of it.
class MatrixPackWriter {
 public:
  MatrixPackWriter(const MatrixRun& run, const PackRows& rows, OutputPack& pack);
  /// Packs and publishes the manifest, unless the run is stopped before.
  [[nodiscard]] MatrixPackReport write();
  [[nodiscard]] bool interrupted() const { return interrupted_; }

 private:
  void append(const RowPiece& piece);
  void begin_part();
  void finish_part();
  /// Waits for the part that is being finished; throws what finishing it threw.
  void await_part();
  /// Keeps the parts that an earlier run finished, from the first on.
  void keep_parts(std::uint64_t piece_rows);
  void publish_items();
  /// Publishes users, run and manifest, and removes what is left of other runs.
  void publish();
  /// What the rows that are missing need on disk.
  [[nodiscard]] SpaceNeed needed_space() const;
  /// Throws unless all rows and ratings were packed.
  void check_counts() const;
  [[nodiscard]] PartSpec part_spec() const;
  [[nodiscard]] PartSamples samples(std::uint64_t first_row, std::uint64_t end_row) const;
  [[nodiscard]] MatrixManifest manifest() const;

  const MatrixRun& run_;
  const PackRows& rows_;
  OutputPack& pack_;
  const Container& container_;
  CodecChoice codec_;
  MatrixShape shape_;
  std::uint64_t chunk_rows_ = 0;
  std::vector<std::uint32_t> row_ratings_;  ///< in X
  std::uint64_t part_index_ = 0;
  std::uint64_t part_first_row_ = 0;
  std::uint64_t kept_rows_ = 0;
  FileRecord users_;
  FileRecord items_;
  std::optional<PendingFile> items_file_;  ///< until the first part is complete
  bool interrupted_ = false;
  std::optional<MatrixPartWriter> part_;
  // Last: a part that is being finished ends before anything that it uses does.
  std::future<PartRecord> finishing_;
};

}  // namespace chunkhit
