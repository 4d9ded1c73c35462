// Orders and residencies as the benchmarks of the reader name them.
#pragma once

#include <array>
#include <string>

#include "chunkhit/reader.h"

namespace chunkhit {

constexpr std::array<Shuffle, 3> kOrders{Shuffle::none, Shuffle::window, Shuffle::global};
constexpr std::array<Residency, 3> kResidencies{Residency::stream, Residency::compressed, Residency::decoded};

inline std::string case_name(Shuffle order, Residency residency) {
  static constexpr std::array<const char*, 3> kOrderNames{"none", "window", "global"};
  static constexpr std::array<const char*, 4> kResidencyNames{"automatic", "decoded", "compressed", "stream"};
  return std::string(kOrderNames[static_cast<std::size_t>(order)]) + ", " +
         kResidencyNames[static_cast<std::size_t>(residency)];
}

}  // namespace chunkhit
