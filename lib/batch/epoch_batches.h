// How the positions of an epoch are shared out into batches: ranks, echoes, the last batch. A format:
// schemas/order.md.
#pragma once

#include <cstdint>
#include <optional>

#include "batch/epoch_order.h"
#include "chunkhit/loader.h"

namespace chunkhit {

class Mixture;

struct BatchSpec {
  std::uint64_t batch_size = 1;  ///< at least 1
  std::uint32_t rank = 0;        ///< below world_size
  std::uint32_t world_size = 1;  ///< at least 1
  RankRemainder rank_remainder = RankRemainder::pad;
  bool drop_last = false;
  std::uint32_t echo = 1;  ///< at least 1; echo · (sample_count + batch_size) below 2^64
  bool operator==(const BatchSpec&) const = default;
};

/// The batches of one rank in one epoch of `sample_count` samples, from position `first_position` on, of
/// which all before were used by all ranks.
///
/// A block is E · B positions of a rank for echo E and batch size B. Global block g takes the positions
/// first_position
/// + [g · E · B · R, (g + 1) · E · B · R) for R ranks, rank r the E · B of them from r · E · B on. The rest
/// at the end, m < E · B · R positions, is one last block that is shared out evenly: each rank takes ceil(m /
/// R) positions with RankRemainder::pad (those past the end begin at 0 again, as torch's DistributedSampler
/// pads) or floor(m / R) with drop; with drop_last no more than a multiple of B. Rank r's begin r times as
/// many after the rest's first.
///
/// In a mixture the ranks' blocks are rotated: otherwise one rank could get all samples of a rare source.
///
/// In an epoch of streams each rank has what is left of its own streams instead: of the m positions of the
/// rest those from m · r / R up to m · (r + 1) / R. Where pad gives a rank one more, its first one comes
/// again. A rank without any has the first position of its block before. Nothing is rotated.
///
/// Without echo a block is a batch. With echo it is used E times, in passes: each permutes the block's
/// positions again, by (seed, epoch, the block's first position, pass), and cuts them into batches of B, the
/// last one of what is left.
class EpochBatches {
 public:
  /// `mixture`: of the epoch; null for one source, and in streams. Must outlive this.
  EpochBatches(std::uint64_t sample_count, const BatchSpec& spec, std::uint64_t seed, std::uint64_t epoch,
               std::uint64_t first_position = 0, const Mixture* mixture = nullptr, bool has_streams = false);
  /// The same for every rank.
  [[nodiscard]] std::uint64_t batch_count() const {
    return full_batch_count() + spec_.echo * rest_pass_batches();
  }
  struct Batch {
    std::uint64_t size = 0;  ///< samples in it
    std::uint64_t first_position =
        0;  ///< the positions of its block: [first_position, end_position), not yet modulo sample_count
    std::uint64_t end_position = 0;
    std::uint64_t block_size = 0;      ///< how many it has; in streams perhaps one that comes twice
    std::uint64_t block = 0;           ///< of this rank
    std::uint32_t pass = 0;            ///< which use of the block, 0 .. echo - 1
    std::uint64_t first_in_block = 0;  ///< its samples are [first_in_block, + size) of the permuted block
    std::uint64_t positions_done =
        0;  ///< global positions that all ranks have used once this batch's block is used up,
            ///< sample_count with the last: the first_position of what is left after ends_block
    bool ends_block = false;
    std::optional<Permutation> pass_order;  ///< of the block's positions in this pass; none without echo
  };
  /// Batch `index` < batch_count().
  [[nodiscard]] Batch batch(std::uint64_t index) const;
  /// The position (already modulo sample_count) of the i-th sample of a batch.
  [[nodiscard]] std::uint64_t position(const Batch& batch, std::uint64_t i) const;

 private:
  [[nodiscard]] std::uint64_t full_batch_count() const { return full_blocks_ * spec_.echo * spec_.echo; }
  [[nodiscard]] std::uint64_t rest_pass_batches() const;
  void fill_full_batch(std::uint64_t index, Batch& batch) const;
  void fill_rest_batch(std::uint64_t index, Batch& batch) const;
  void take_own_rest(std::uint64_t first, Batch& batch) const;
  [[nodiscard]] std::uint64_t block_of_rank(std::uint64_t first, std::uint64_t block_positions) const;
  [[nodiscard]] Permutation pass_order(const Batch& batch) const;

  BatchSpec spec_;
  std::uint64_t sample_count_;
  std::uint64_t seed_;
  std::uint64_t epoch_;
  const Mixture* mixture_;
  bool has_streams_;
  std::uint64_t first_position_;
  std::uint64_t full_blocks_ = 0;     // of each rank
  std::uint64_t rest_ = 0;            // of all ranks, behind these
  std::uint64_t rest_positions_ = 0;  // of it that each rank uses, in the last, smaller block
};

}  // namespace chunkhit
