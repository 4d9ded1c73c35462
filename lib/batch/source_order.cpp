#include "batch/source_order.h"

#include <algorithm>

namespace chunkhit {

SourceOrder::SourceOrder(const ChunkGrid& grid, const OrderSpec& spec, const std::optional<DrawSpec>& draws)
    : grid_(grid), spec_(spec) {
  if (!draws) return;
  sampler_.emplace(grid_, *draws, spec_.seed);
  first_ = sampler_->epoch(0);
}

/// The chunks that an epoch visits; where they differ among epochs, those of epoch 0.
const ChunkGrid& SourceOrder::visits() const { return first_ ? first_->grid() : grid_; }

std::uint64_t SourceOrder::position_count() const {
  return sampler_ ? sampler_->epoch_samples() : grid_.sample_count();
}

std::unique_ptr<const EpochOrder> SourceOrder::epoch(std::uint64_t epoch) const {
  if (!sampler_) return std::make_unique<const EpochOrder>(grid_, spec_, epoch);
  return std::make_unique<const EpochOrder>(sampler_->epoch(epoch), spec_, epoch);
}

std::optional<std::uint64_t> SourceOrder::sampler_id() const {
  return sampler_ ? std::optional(sampler_->id()) : std::nullopt;
}

std::uint64_t SourceOrder::chunks_needed(std::uint64_t positions, std::uint64_t streams,
                                         std::uint64_t own) const {
  const ChunkGrid& visits = this->visits();
  const std::uint64_t filled = positions / std::max<std::uint64_t>(1, visits.typical_samples());
  const std::uint64_t window = spec_.shuffle == Shuffle::window ? (spec_.window_chunks - 1) / streams + 1 : 1;
  // A batch may begin anywhere in a window: one window more than its positions fill, rounded up to windows.
  return std::min(visits.chunk_count(), own * ((filled + window) / window * window + window));
}

MixingInfo SourceOrder::mixing() const {
  MixingInfo info = mixing_of(visits(), spec_);
  info.chunk_visits = info.chunks;
  info.chunks = grid_.chunk_count();
  info.epoch_samples = position_count();
  info.distinct_samples = sampler_ ? sampler_->distinct_samples() : static_cast<double>(grid_.sample_count());
  info.samples_per_visit = static_cast<double>(info.epoch_samples) /
                           static_cast<double>(std::max<std::uint64_t>(1, info.chunk_visits));
  return info;
}

}  // namespace chunkhit
