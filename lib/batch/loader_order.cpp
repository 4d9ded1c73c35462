#include "batch/loader_order.h"

#include <utility>
#include <vector>

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

std::unique_ptr<const PositionOrder> LoaderOrder::epoch(std::uint64_t epoch,
                                                        const RankStreams& streams) const {
  if (streams.all.count > 1) return streamed(epoch, streams);
  if (mixture_) return std::make_unique<const MixedOrder>(*mixture_, epoch);
  return source_->epoch(epoch);
}

std::unique_ptr<const PositionOrder> LoaderOrder::streamed(std::uint64_t epoch,
                                                           const RankStreams& streams) const {
  const auto all = mixture_ ? nullptr : source_->epoch(epoch);
  // Of fewer positions than streams, a rank may have to use one of another stream.
  if (position_count() < streams.all.count && streams.count < streams.all.count)
    return streamed(epoch, {streams.all, 0, streams.all.count});
  MixedOrder::OwnOrders shared;
  std::vector<std::unique_ptr<const PositionOrder>> orders;
  for (std::uint64_t own = streams.first; own < streams.first + streams.count; ++own) {
    const StreamOf stream{own, streams.all.count};
    if (mixture_)
      orders.push_back(std::make_unique<const MixedOrder>(*mixture_, epoch, stream, &shared));
    else
      orders.push_back(std::make_unique<const EpochOrder>(all->stream(stream)));
  }
  return std::make_unique<const StreamedOrder>(position_count(), streams.all, streams.first,
                                               std::move(orders));
}

std::optional<std::uint64_t> LoaderOrder::sampler_id() const {
  return mixture_ ? std::optional(mixture_->id()) : source_->sampler_id();
}

/// Each stream has as many positions of them, rounded up.
std::uint64_t LoaderOrder::chunks_needed(std::uint64_t positions, const RankStreams& streams) const {
  const std::uint64_t of_each = (positions - 1) / streams.all.count + 1;
  if (!mixture_) return source_->chunks_needed(of_each, streams.all.count, streams.count);
  return streams.count * mixture_->chunks_needed(of_each, {streams.first, streams.all.count});
}

MixingInfo LoaderOrder::mixing() const { return mixture_ ? mixture_->mixing() : source_->mixing(); }

}  // namespace chunkhit
