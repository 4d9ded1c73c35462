// Where the chunks of a source begin: arithmetic for the usual ones, a list for the others.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "batch/permutation.h"

namespace chunkhit {

/// The chunks of a source, in its own order: all of `chunk_samples` samples but some. Grows with the
/// exceptions only.
class ChunkGrid {
 public:
  /// `sample_counts`: of each chunk. Throws bad_data for a chunk of none, or when the sum takes more than 64
  /// bits.
  explicit ChunkGrid(std::span<const std::uint64_t> sample_counts);
  [[nodiscard]] std::uint64_t chunk_count() const { return chunk_count_; }
  [[nodiscard]] std::uint64_t sample_count() const { return sample_count_; }
  [[nodiscard]] std::uint64_t chunk_samples() const { return chunk_samples_; }  ///< of most chunks
  /// The first sample of a chunk; sample_count() for chunk chunk_count().
  [[nodiscard]] std::uint64_t first_sample(std::uint64_t chunk) const;
  [[nodiscard]] std::uint64_t sample_count_of(std::uint64_t chunk) const;
  struct Place {
    std::uint64_t chunk = 0;
    std::uint64_t in_chunk = 0;
    bool operator==(const Place&) const = default;
  };
  /// Where a sample < sample_count() lies.
  [[nodiscard]] Place find(std::uint64_t sample) const;
  /// The same chunks in another order: its chunk s is this one's visited(s).
  [[nodiscard]] ChunkGrid reordered(const Permutation& visited) const;
  /// The sum of n · (n - 1) over the chunks' sample counts n: ordered pairs of samples from one chunk.
  [[nodiscard]] double pairs_in_chunks() const;

 private:
  struct Exception {
    std::uint64_t chunk;
    std::uint64_t sample_count;
    std::uint64_t first_sample;
    [[nodiscard]] std::uint64_t end_sample() const { return first_sample + sample_count; }
  };
  void place_exceptions();

  std::uint64_t chunk_count_ = 0;
  std::uint64_t sample_count_ = 0;
  std::uint64_t chunk_samples_ = 0;
  std::vector<Exception> exceptions_;  // ascending
};

}  // namespace chunkhit
