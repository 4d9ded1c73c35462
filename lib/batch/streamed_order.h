// An epoch in streams: each has its own chunks, so that ranks share them out. A format: schemas/order.md.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "batch/epoch_order.h"
#include "batch/visit_list.h"

namespace chunkhit {

/// How an epoch is divided into streams: `count` of them take turns, each with `unit` positions.
struct Streams {
  std::uint64_t count = 1;
  std::uint64_t unit = 1;
};

/// So many that a rank which reads all of them has room for their orders.
inline constexpr std::uint64_t kMaxStreams = 65'536;

/// Which stream has a position of an epoch, and as which of its own positions.
class StreamGrid {
 public:
  StreamGrid(std::uint64_t position_count, const Streams& streams);
  struct Location {
    std::uint64_t stream = 0;
    std::uint64_t position = 0;  ///< of the stream
  };
  [[nodiscard]] Location find(std::uint64_t position) const;
  [[nodiscard]] std::uint64_t position(const Location& location) const;

 private:
  Streams streams_;
  std::uint64_t turn_positions_ = 0;  // of each stream that are in whole turns
  std::uint64_t rest_;                // of all streams that are not
};

/// Some streams of an epoch, from `first_stream` on, in turns. Positions are those of the epoch; only those
/// of the streams may be asked for.
class StreamedOrder final : public PositionOrder {
 public:
  /// `orders`: of each of the streams.
  StreamedOrder(std::uint64_t position_count, const Streams& streams, std::uint64_t first_stream,
                std::vector<std::unique_ptr<const PositionOrder>> orders);
  [[nodiscard]] DrawnSample operator()(std::uint64_t position, Window& window) const override;
  [[nodiscard]] std::uint64_t chunk_at(std::uint64_t slot) const override { return visits_.chunk_at(slot); }
  [[nodiscard]] Slots slots_of(std::uint64_t first_position, std::uint64_t end_position) const override {
    return visits_.slots_of(first_position, end_position);
  }
  void for_each_slot(const Visit& visit) const override { visits_.for_each(visit); }

 private:
  StreamGrid grid_;
  std::uint64_t first_stream_;
  std::vector<std::unique_ptr<const PositionOrder>> orders_;
  VisitList visits_;
};

}  // namespace chunkhit
