#include "batch/loader_order.h"

namespace chunkhit {

LoaderOrder::LoaderOrder(const ChunkGrid& grid, const OrderSpec& spec, const SamplingSpec& sampling)
    : spec_(spec) {
  if (sampling.mixture)
    mixture_.emplace(grid, spec, *sampling.mixture, sampling.draws);
  else
    source_.emplace(grid, spec, sampling.draws);
}

std::uint64_t LoaderOrder::position_count() const {
  return mixture_ ? mixture_->position_count() : source_->position_count();
}

std::unique_ptr<const PositionOrder> LoaderOrder::epoch(std::uint64_t epoch) const {
  if (mixture_) return std::make_unique<const MixedOrder>(*mixture_, epoch);
  return source_->epoch(epoch);
}

std::optional<std::uint64_t> LoaderOrder::sampler_id() const {
  return mixture_ ? std::optional(mixture_->id()) : source_->sampler_id();
}

std::uint64_t LoaderOrder::chunks_needed(std::uint64_t positions) const {
  return mixture_ ? mixture_->chunks_needed(positions) : source_->chunks_needed(positions);
}

MixingInfo LoaderOrder::mixing() const { return mixture_ ? mixture_->mixing() : source_->mixing(); }

}  // namespace chunkhit
