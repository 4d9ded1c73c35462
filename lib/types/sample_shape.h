// The fixed shape of the samples of a pack.
#pragma once

#include <cstdint>

#include "chunkhit/pack_info.h"

namespace chunkhit {

/// The shape of one sample of 8-bit values.
struct SampleShape {
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  std::uint32_t channels = 0;
  Layout layout = Layout::nhwc;
  [[nodiscard]] std::uint64_t byte_count() const { return std::uint64_t{height} * width * channels; }
  bool operator==(const SampleShape&) const = default;
};

}  // namespace chunkhit
