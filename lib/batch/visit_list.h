// The chunks that an order of several parts visits, by when they are needed.
#pragma once

#include <cstdint>
#include <vector>

#include "batch/epoch_order.h"

namespace chunkhit {

/// Visits of chunks in the order in which positions need them: slot after slot.
class VisitList {
 public:
  /// Adds a chunk that some positions need.
  void add(const PositionOrder::Positions& positions, std::uint64_t chunk) {
    visits_.push_back({positions.first, positions.end, chunk});
  }
  /// Must be called after the last `add`; those of one first position stay in the order they were added.
  void sort();
  [[nodiscard]] std::uint64_t size() const { return visits_.size(); }
  [[nodiscard]] std::uint64_t chunk_at(std::uint64_t slot) const { return visits_[slot].chunk; }
  [[nodiscard]] PositionOrder::Slots slots_of(std::uint64_t first_position, std::uint64_t end_position) const;
  /// The most slots that any `positions` positions need.
  [[nodiscard]] std::uint64_t slots_needed(std::uint64_t positions) const;
  void for_each(const PositionOrder::Visit& visit) const {
    for (const Visit& each : visits_) visit({each.first_position, each.end_position}, each.chunk);
  }

 private:
  struct Visit {
    std::uint64_t first_position;  // that needs it
    std::uint64_t end_position;    // of this visit and all before
    std::uint64_t chunk;
  };
  std::vector<Visit> visits_;  // by first_position
};

}  // namespace chunkhit
