#include "batch/streamed_order.h"

#include <utility>

namespace chunkhit {
namespace {

using Wide = unsigned __int128;

}  // namespace

StreamGrid::StreamGrid(std::uint64_t position_count, const Streams& streams) : streams_(streams) {
  const Wide turn = static_cast<Wide>(streams.count) * streams.unit;
  const auto turns = static_cast<std::uint64_t>(position_count / turn);
  turn_positions_ = turns * streams.unit;
  rest_ = position_count - turn_positions_ * streams.count;
}

StreamGrid::Location StreamGrid::find(std::uint64_t position) const {
  const std::uint64_t in_turns = turn_positions_ * streams_.count;
  if (position < in_turns) {
    const std::uint64_t unit = position / streams_.unit;
    return {unit % streams_.count, unit / streams_.count * streams_.unit + position % streams_.unit};
  }
  // The last stream whose rest begins at this position or before.
  const std::uint64_t at = position - in_turns;
  const auto stream = static_cast<std::uint64_t>((static_cast<Wide>(at + 1) * streams_.count - 1) / rest_);
  return {stream, turn_positions_ + at - StreamOf{stream, streams_.count}.first_of(rest_)};
}

std::uint64_t StreamGrid::position(const Location& location) const {
  if (location.position < turn_positions_)
    return (location.position / streams_.unit * streams_.count + location.stream) * streams_.unit +
           location.position % streams_.unit;
  return turn_positions_ * streams_.count + StreamOf{location.stream, streams_.count}.first_of(rest_) +
         location.position - turn_positions_;
}

StreamedOrder::StreamedOrder(std::uint64_t position_count, const Streams& streams, std::uint64_t first_stream,
                             std::vector<std::unique_ptr<const PositionOrder>> orders)
    : grid_(position_count, streams), first_stream_(first_stream), orders_(std::move(orders)) {
  for (std::uint64_t own = 0; own < orders_.size(); ++own)
    orders_[own]->for_each_slot([&](const Positions& positions, std::uint64_t chunk) {
      const std::uint64_t stream = first_stream_ + own;
      visits_.add(
          {grid_.position({stream, positions.first}), grid_.position({stream, positions.end - 1}) + 1},
          chunk);
    });
  visits_.sort();
}

DrawnSample StreamedOrder::operator()(std::uint64_t position, Window& window) const {
  const StreamGrid::Location found = grid_.find(position);
  const std::uint64_t own = found.stream - first_stream_;
  if (window.sources_.size() != orders_.size()) window.sources_.resize(orders_.size());
  return (*orders_[own])(found.position, window.sources_[own]);
}

}  // namespace chunkhit
