// The chunks of several parts, numbered one after the other.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "store/part.h"

namespace chunkhit {

/// Owns open parts; chunk and sample numbers go on from part to part.
class ChunkSet {
 public:
  /// Throws bad_data when the parts hold samples of different shapes.
  explicit ChunkSet(std::vector<std::unique_ptr<ChunkReader>> parts);

  /// Where a chunk lies.
  struct Place {
    std::size_t part;
    std::size_t chunk;  ///< in the part
  };
  [[nodiscard]] std::size_t chunk_count() const { return first_chunks_.back(); }
  [[nodiscard]] std::uint64_t sample_count() const { return first_samples_.back(); }
  [[nodiscard]] const SampleShape& sample() const { return parts_.front()->spec().sample; }
  [[nodiscard]] const std::vector<std::unique_ptr<ChunkReader>>& parts() const { return parts_; }
  [[nodiscard]] Place find(std::size_t chunk) const;
  [[nodiscard]] const ChunkReader& part(Place place) const { return *parts_[place.part]; }
  [[nodiscard]] const StoredChunk& stored(Place place) const { return part(place).chunks()[place.chunk]; }
  /// The first sample of a chunk, counted over all parts.
  [[nodiscard]] std::uint64_t first_sample(Place place) const;
  /// The first sample of each part, and behind them the number of all samples.
  [[nodiscard]] const std::vector<std::uint64_t>& first_samples() const { return first_samples_; }
  [[nodiscard]] std::vector<std::uint64_t> sample_counts() const;  ///< of each chunk
  /// Whether the samples of a part, or of all, lie in the file as they are.
  [[nodiscard]] bool is_raw(std::size_t part) const { return raw_[part]; }
  [[nodiscard]] bool is_raw() const;
  [[nodiscard]] std::uint64_t raw_bytes() const;         ///< of all samples
  [[nodiscard]] std::uint64_t stored_bytes() const;      ///< of all chunks
  [[nodiscard]] std::uint64_t most_chunk_bytes() const;  ///< raw bytes of the largest chunk
  /// Tells this source from others: a hash over the parts' packs, places and counts.
  [[nodiscard]] std::uint64_t id() const;

 private:
  std::vector<std::unique_ptr<ChunkReader>> parts_;
  std::vector<std::size_t> first_chunks_;     ///< of each part, and the number of all
  std::vector<std::uint64_t> first_samples_;  ///< of each part, and the number of all
  std::vector<bool> raw_;                     ///< each part
};

}  // namespace chunkhit
