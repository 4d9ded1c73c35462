// Batches of pairs: ratings one by one, each with its user and with items that the user has not rated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "batch/sparse_values.h"
#include "chunkhit/sparse_loader.h"
#include "types/csr_rows.h"

namespace chunkhit {

/// What a batch of pairs has.
struct PairFormat {
  std::size_t negatives = 0;  ///< of each pair
  std::uint64_t seed = 0;
  std::uint64_t column_count = 0;
  std::size_t id_bytes = 4;                          ///< 2 or 4
  bool has_repeats = false;                          ///< a row may have an item several times
  bool has_times = false;                            ///< wanted
  std::shared_ptr<const PopularitySampler> sampler;  ///< null: negatives are uniform
};

/// A rating: an entry of a row whose columns ascend.
struct RatedPair {
  StoredRow row;
  StoredRow held_out;  ///< of the same row; no negatives either
  std::size_t entry = 0;
  std::uint64_t use = 0;  ///< distinguishes uses of ratings: `use` in schemas/order.md
};

/// Bytes of a block for so many pairs; throws usage above kMaxDenseBatchBytes.
[[nodiscard]] std::size_t pair_block_bytes(std::size_t pairs, const PairFormat& format);

/// Writes batches of pairs; each thread has its own, which keeps memory between them.
class PairWriter {
 public:
  PairWriter(const PairFormat& format, const EntryFormat& entries)
      : format_(format), values_(entries), stored_bytes_(value_bytes(entries.value_type)) {}
  /// Writes pairs whose rows have the numbers `rows` into a block of pair_block_bytes bytes, aligned to 64.
  /// Throws usage, naming the row, where it has all items that can be drawn.
  [[nodiscard]] PairBatch write(std::span<const RatedPair> pairs, std::span<const std::uint64_t> rows,
                                std::uint8_t* block);

 private:
  template <class Id>
  void write_negatives(const RatedPair& pair, std::uint64_t row, std::int64_t* to);
  template <class Id>
  void draw_uniformly(std::span<const Id> own, const RatedPair& pair, std::uint64_t row, std::int64_t* to);
  template <class Id>
  void draw_by_popularity(std::span<const Id> own, const RatedPair& pair, std::uint64_t row,
                          std::int64_t* to);
  [[nodiscard]] std::int64_t column(const RatedPair& pair) const;

  const PairFormat& format_;
  EntryValues values_;
  std::size_t stored_bytes_;           // of a value
  std::vector<std::uint32_t> joined_;  // items of a row, where some are held out or repeat
  std::vector<std::int32_t> own_;      // as a sampler takes them
  std::vector<std::int32_t> drawn_;
};

}  // namespace chunkhit
