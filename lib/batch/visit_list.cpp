#include "batch/visit_list.h"

#include <algorithm>

namespace chunkhit {

void VisitList::sort() {
  std::ranges::stable_sort(visits_, {}, &Visit::first_position);
  std::uint64_t end_position = 0;
  for (Visit& visit : visits_) visit.end_position = end_position = std::max(end_position, visit.end_position);
}

PositionOrder::Slots VisitList::slots_of(std::uint64_t first_position, std::uint64_t end_position) const {
  const auto first = std::ranges::partition_point(
      visits_, [=](const Visit& visit) { return visit.end_position <= first_position; });
  const auto end = std::ranges::partition_point(
      visits_, [=](const Visit& visit) { return visit.first_position < end_position; });
  const auto first_slot = static_cast<std::uint64_t>(first - visits_.begin());
  return {first_slot, std::max(first_slot, static_cast<std::uint64_t>(end - visits_.begin()))};
}

std::uint64_t VisitList::slots_needed(std::uint64_t positions) const {
  std::uint64_t needed = 1;
  for (const Visit& visit : visits_) {
    const std::uint64_t first = visit.first_position + 1 - std::min(positions, visit.first_position + 1);
    for (const std::uint64_t begin : {first, visit.first_position}) {
      const PositionOrder::Slots slots = slots_of(begin, begin + positions);
      needed = std::max(needed, slots.end - slots.first);
    }
  }
  return needed;
}

}  // namespace chunkhit
