// Finished packs of pack-sparse as its input → blocks of ratings.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "manifest/manifest.h"
#include "ratings/entry_collector.h"
#include "ratings/rating_reader.h"
#include "store/part.h"

namespace chunkhit {

/// Whether an input is meant as a pack: a folder, or its manifest.json.
[[nodiscard]] bool is_pack_path(const std::string& path);

/// Reads a pack, a part at a time: of each chunk the ratings of X, then those of held_out where it has them.
/// Ids are the pack's own.
class PackRatingReader : public RatingReader {
 public:
  /// Throws bad_data where the folder holds no finished pack of ratings, or rows with labels. `memory_bytes`:
  /// limit for a part's ids, and for a part of HDF5, whose rows are all read at once.
  PackRatingReader(std::string folder, std::uint64_t memory_bytes);
  /// Throws bad_data naming part and chunk where the pack is damaged, usage where a part needs more memory.
  [[nodiscard]] bool next(RatingBlock& block) override;

 private:
  void note_columns(const char* option, const std::vector<PackColumn>& columns, const FileRecord& list);
  void open_part();
  void check_memory(const PartRecord& listed) const;
  void add_chunk();
  void add_rows(std::size_t matrix, std::uint64_t first_row);
  void check_counts() const;

  std::string folder_;
  std::uint64_t memory_bytes_;
  MatrixManifest manifest_;
  std::unique_ptr<ChunkReader> part_;
  std::optional<EntryCollector> collector_;  ///< with the names of the part's rows and columns
  std::size_t next_part_ = 0;
  std::size_t next_chunk_ = 0;
  std::array<std::uint64_t, 2> nnz_{};  ///< read so far, of each matrix
  // Of the chunk that is decoded.
  ByteBuffer stored_;
  ByteBuffer raw_;
  ByteBuffer numbers_;
  std::vector<std::uint64_t> row_ends_;
  std::vector<std::uint32_t> columns_;
  std::vector<float> ratings_;
  std::vector<std::int64_t> times_;
  std::vector<std::uint32_t> ties_;  ///< empty where the chunk has none
  std::vector<std::size_t> order_;   ///< entries of a row, as they are added
};

}  // namespace chunkhit
