#include "batch/epoch_batches.h"

#include <algorithm>

#include "base/random.h"
#include "batch/mixture.h"

namespace chunkhit {
namespace {

// Returns what each rank gets of the rest that does not fill a block of all ranks.
std::uint64_t share_of(std::uint64_t rest, const BatchSpec& spec) {
  const bool one_more = spec.rank_remainder == RankRemainder::pad && rest % spec.world_size != 0;
  const std::uint64_t share = rest / spec.world_size + (one_more ? 1 : 0);
  return spec.drop_last ? share - share % spec.batch_size : share;
}

}  // namespace

EpochBatches::EpochBatches(std::uint64_t sample_count, const BatchSpec& spec, std::uint64_t seed,
                           std::uint64_t epoch, std::uint64_t first_position, const Mixture* mixture,
                           bool has_streams)
    : spec_(spec),
      sample_count_(sample_count),
      seed_(seed),
      epoch_(epoch),
      mixture_(mixture),
      has_streams_(has_streams),
      first_position_(std::min(first_position, sample_count)) {
  const std::uint64_t left = sample_count_ - first_position_;
  // 64 + 32 + 32 bits.
  const unsigned __int128 block_of_all =
      static_cast<unsigned __int128>(spec.batch_size) * spec.echo * spec.world_size;
  full_blocks_ = static_cast<std::uint64_t>(left / block_of_all);
  rest_ = static_cast<std::uint64_t>(left % block_of_all);
  rest_positions_ = share_of(rest_, spec);
}

std::uint64_t EpochBatches::rest_pass_batches() const {
  return rest_positions_ / spec_.batch_size + (rest_positions_ % spec_.batch_size != 0 ? 1 : 0);
}

EpochBatches::Batch EpochBatches::batch(std::uint64_t index) const {
  Batch batch;
  if (index < full_batch_count())
    fill_full_batch(index, batch);
  else
    fill_rest_batch(index - full_batch_count(), batch);
  if (batch.block + 1 == full_blocks_ + (rest_positions_ != 0 ? 1 : 0)) batch.positions_done = sample_count_;
  if (spec_.echo > 1) batch.pass_order = pass_order(batch);
  return batch;
}

/// A block has echo · echo batches: `echo` batches of new positions, passed `echo` times in different orders.
void EpochBatches::fill_full_batch(std::uint64_t index, Batch& batch) const {
  const std::uint64_t echo = spec_.echo;
  const std::uint64_t block_positions = echo * spec_.batch_size;
  const std::uint64_t in_block = index % (echo * echo);
  batch.size = spec_.batch_size;
  batch.block = index / (echo * echo);
  batch.pass = static_cast<std::uint32_t>(in_block / echo);
  batch.first_in_block = in_block % echo * spec_.batch_size;
  const std::uint64_t first = first_position_ + batch.block * spec_.world_size * block_positions;
  batch.first_position = first + block_of_rank(first, block_positions) * block_positions;
  batch.end_position = batch.first_position + block_positions;
  batch.block_size = block_positions;
  batch.positions_done = first + spec_.world_size * block_positions;
  batch.ends_block = in_block + 1 == echo * echo;
}

/// The rest is a last, smaller block that is passed as often.
void EpochBatches::fill_rest_batch(std::uint64_t index, Batch& batch) const {
  const std::uint64_t pass_batches = rest_pass_batches();
  const std::uint64_t first =
      first_position_ + full_blocks_ * spec_.world_size * spec_.echo * spec_.batch_size;
  batch.block = full_blocks_;
  batch.pass = static_cast<std::uint32_t>(index / pass_batches);
  batch.first_in_block = index % pass_batches * spec_.batch_size;
  batch.size = std::min(spec_.batch_size, rest_positions_ - batch.first_in_block);
  batch.block_size = rest_positions_;
  batch.first_position = first + block_of_rank(first, rest_positions_) * rest_positions_;
  batch.end_position = batch.first_position + rest_positions_;
  if (has_streams_) take_own_rest(first, batch);
  batch.ends_block = index + 1 == spec_.echo * pass_batches;
}

/// What is left of the rank's own streams. One that comes twice is the first of them, or where nothing is
/// left, that of the block before.
void EpochBatches::take_own_rest(std::uint64_t first, Batch& batch) const {
  const StreamOf rank{spec_.rank, spec_.world_size};
  const std::uint64_t begin = rank.first_of(rest_), end = rank.end_of(rest_);
  batch.first_position = first + begin;
  batch.end_position = first + std::min(end, begin + rest_positions_);
  if (begin < end) return;
  const std::uint64_t block_positions = spec_.echo * spec_.batch_size;
  const bool has_before = first / block_positions >= spec_.world_size;
  batch.first_position =
      has_before ? first - (spec_.world_size - spec_.rank) * block_positions : spec_.rank % sample_count_;
  batch.end_position = batch.first_position;
}

/// Returns which block of a global block the rank has. Ranks take turns with the first sample of the rarest
/// source (schemas/order.md, Turns).
std::uint64_t EpochBatches::block_of_rank(std::uint64_t first, std::uint64_t block_positions) const {
  const std::uint64_t ranks = spec_.world_size;
  if (mixture_ == nullptr || ranks == 1) return spec_.rank;
  const Mixture::RareSample rare =
      mixture_->rarest(epoch_, first, std::min(sample_count_ - first, ranks * block_positions));
  const std::uint64_t source_seed = random_bits(seed_, Purpose::rank_order, rare.source);
  const Permutation turns(ranks, random_bits(source_seed, Purpose::rank_order, rare.use / ranks));
  return (spec_.rank + rare.offset / block_positions + ranks - turns(rare.use % ranks)) % ranks;
}

/// Each pass over a block has its own order, by the block's first position and the pass.
Permutation EpochBatches::pass_order(const Batch& batch) const {
  const std::uint64_t echo_seed = random_bits(seed_, Purpose::echo_order, epoch_);
  const std::uint64_t block_seed = random_bits(echo_seed, Purpose::echo_order, batch.first_position);
  return {batch.block_size, random_bits(block_seed, Purpose::echo_order, batch.pass)};
}

std::uint64_t EpochBatches::position(const Batch& batch, std::uint64_t i) const {
  const std::uint64_t in_block = batch.first_in_block + i;
  const std::uint64_t position =
      batch.first_position + (batch.pass_order ? (*batch.pass_order)(in_block) : in_block);
  if (position >= batch.end_position) return batch.first_position;
  return position < sample_count_ ? position : position % sample_count_;
}

}  // namespace chunkhit
