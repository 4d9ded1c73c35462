// Orders and caches as the benchmarks of the reader name them.
#pragma once

#include <array>
#include <string>

#include "chunkhit/loader.h"
#include "types/enum_names.h"

namespace chunkhit {

constexpr std::array<Shuffle, 3> kOrders{Shuffle::none, Shuffle::window, Shuffle::global};
constexpr std::array<Cache, 3> kResidencies{Cache::none, Cache::compressed, Cache::decoded};

inline std::string case_name(Shuffle order, Cache cache) { return name_of(order) + ", " + name_of(cache); }

}  // namespace chunkhit
