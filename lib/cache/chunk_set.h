// The chunks of several parts, numbered one after the other.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "store/part.h"

namespace chunkhit {

/// Owns open parts; chunk and sample numbers go on from part to part.
class ChunkSet {
 public:
  /// Throws bad_data when the parts hold samples of different shapes, or matrices of different columns or
  /// values.
  explicit ChunkSet(std::vector<std::unique_ptr<ChunkReader>> parts);

  /// The location of a chunk.
  struct Location {
    std::size_t part;
    std::size_t chunk;  ///< in the part
  };
  [[nodiscard]] std::size_t chunk_count() const { return first_chunks_.back(); }
  [[nodiscard]] std::uint64_t sample_count() const { return first_samples_.back(); }
  [[nodiscard]] const Payload& payload() const { return parts_.front()->spec().payload(); }
  /// The shape of images, without sides where each has its own.
  [[nodiscard]] const SampleShape& sample() const { return payload().shape(); }
  [[nodiscard]] bool holds_own_sizes() const { return parts_.front()->spec().holds_own_sizes(); }
  [[nodiscard]] bool holds_rows() const { return parts_.front()->spec().holds_rows(); }
  [[nodiscard]] const MatrixShape& matrix() const { return parts_.front()->spec().rows().matrix; }
  /// How the rows of matrices are decoded.
  [[nodiscard]] RowArrays row_arrays() const {
    const bool has_times = holds_rows() && matrix().has_times;
    return {arrays_.times && has_times, arrays_.by_time && has_times};
  }
  void set_row_arrays(RowArrays arrays) { arrays_ = arrays; }
  [[nodiscard]] const std::vector<std::unique_ptr<ChunkReader>>& parts() const { return parts_; }
  [[nodiscard]] Location find(std::size_t chunk) const;
  [[nodiscard]] const ChunkReader& part(Location location) const { return *parts_[location.part]; }
  [[nodiscard]] const StoredChunk& stored(Location location) const {
    return part(location).chunks()[location.chunk];
  }
  /// Bytes from one decoded sample to the next; 0 where images have their own sizes, or samples are rows.
  [[nodiscard]] std::uint64_t sample_step() const { return sample_step_; }
  /// Where a sample's bytes are in those of its chunk, once that is decoded; of images of their own sizes,
  /// as they are stored.
  struct SampleBytes {
    std::uint64_t offset;
    std::uint64_t count;
  };
  [[nodiscard]] SampleBytes sample_bytes(Location location, std::uint64_t in_chunk) const;
  /// The location of a sample: its part, and its index there.
  struct SampleLocation {
    std::size_t part;
    std::uint64_t sample;
  };
  [[nodiscard]] SampleLocation find_sample(std::uint64_t sample) const;
  /// The first sample of a chunk, counted over all parts.
  [[nodiscard]] std::uint64_t first_sample(Location location) const;
  [[nodiscard]] std::vector<std::uint64_t> sample_counts() const;  ///< of each chunk
  /// Makes the ratings of X, and not the rows, what epochs have: `counts` of each chunk, whose sum is no more
  /// than 64 bits.
  void set_rating_counts(std::vector<std::uint64_t> counts);
  [[nodiscard]] bool serves_ratings() const { return !rating_counts_.empty(); }
  /// Samples of each chunk that epochs have: ratings, of which a chunk may have none, or sample_counts().
  [[nodiscard]] std::vector<std::uint64_t> epoch_counts() const {
    return serves_ratings() ? rating_counts_ : sample_counts();
  }
  [[nodiscard]] std::uint64_t epoch_count() const {
    return serves_ratings() ? rating_count_ : sample_count();
  }
  /// Whether the samples of a part, or of all, are stored raw.
  [[nodiscard]] bool is_raw(std::size_t part) const { return raw_[part]; }
  [[nodiscard]] bool is_raw() const;
  /// Whether all parts' samples can be compared one by one (ChunkReader::compares_samples).
  [[nodiscard]] bool compares_samples() const;
  /// Whether many small reads of a part cost little (InputFile::reads_ahead).
  [[nodiscard]] bool reads_ahead() const;
  /// Bytes that a chunk takes in memory: its samples, or at most its rows (cache/decoded_rows.h).
  [[nodiscard]] std::uint64_t decoded_bytes(Location location) const;
  [[nodiscard]] std::uint64_t decoded_bytes() const;    ///< of all chunks
  [[nodiscard]] std::uint64_t stored_bytes() const;     ///< of all chunks
  [[nodiscard]] std::uint64_t max_chunk_bytes() const;  ///< while and after the largest chunk is decoded
  /// Stored bytes of the largest chunk, of parts that do not hold samples as they are.
  [[nodiscard]] std::uint64_t max_stored_bytes() const;
  [[nodiscard]] std::uint64_t max_fetched_bytes() const;  ///< stored bytes of the largest chunk
  /// Tells this source from others: a hash over the parts' packs, locations and counts.
  [[nodiscard]] std::uint64_t id() const;
  /// Tells the stored and decoded bytes of all chunks from others: a hash over files or URLs, and over what
  /// decoding depends on. Nothing where chunks have no hashes.
  [[nodiscard]] std::optional<std::uint64_t> contents_id() const;

 private:
  RowArrays arrays_;
  std::vector<std::uint64_t> rating_counts_;  ///< of each chunk; empty where samples are rows
  std::uint64_t rating_count_ = 0;
  std::vector<std::unique_ptr<ChunkReader>> parts_;
  std::uint64_t sample_step_;
  std::vector<std::size_t> first_chunks_;                   ///< of each part, and the number of all
  std::vector<std::uint64_t> first_samples_;                ///< of each part, and the number of all
  std::vector<bool> raw_;                                   ///< each part
  std::vector<std::vector<std::uint32_t>> sample_offsets_;  ///< each part's samples of their own sizes
};

}  // namespace chunkhit
