// What bytes of a fuzz target's input want of an image.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "decode/image_decoder.h"

namespace chunkhit {

constexpr std::size_t kChoiceBytes = 8;

// Four bytes pick a range of [0, length): its begin and its length.
inline void pick_range(const std::uint8_t* choice, std::uint32_t length, std::uint32_t& begin,
                       std::uint32_t& count) {
  begin = load_little<std::uint16_t>(choice) % length;
  count = load_little<std::uint16_t>(choice + 2) % (length - begin) + 1;
}

/// Picks region, shrink and channels by kChoiceBytes.
inline DecodePlan pick_plan(const std::uint8_t* choice, const ImageHeader& header) {
  constexpr std::uint32_t kChannels[] = {0, 1, 3, 4};
  DecodePlan plan;
  plan.shrink = header.scales ? 1u << (choice[3] >> 6) : 1;
  plan.channels = kChannels[choice[7] >> 6];
  pick_range(choice, (header.width + plan.shrink - 1) / plan.shrink, plan.region.x, plan.region.width);
  pick_range(choice + 4, (header.height + plan.shrink - 1) / plan.shrink, plan.region.y, plan.region.height);
  return plan;
}

}  // namespace chunkhit
