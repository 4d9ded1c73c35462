// Orders and caches as the benchmarks of the reader name them.
#pragma once

#include <array>
#include <string>

#include "chunkhit/loader.h"

namespace chunkhit {

constexpr std::array<Shuffle, 3> kOrders{Shuffle::none, Shuffle::window, Shuffle::global};
constexpr std::array<Cache, 3> kResidencies{Cache::none, Cache::compressed, Cache::decoded};

inline std::string case_name(Shuffle order, Cache cache) {
  static constexpr std::array<const char*, 3> kOrderNames{"none", "window", "global"};
  static constexpr std::array<const char*, 4> kCacheNames{"automatic", "decoded", "compressed", "none"};
  return std::string(kOrderNames[static_cast<std::size_t>(order)]) + ", " +
         kCacheNames[static_cast<std::size_t>(cache)];
}

}  // namespace chunkhit
