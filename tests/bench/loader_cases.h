// Orders and caches as the benchmarks of the reader name them.
#pragma once

#include <array>
#include <string>

#include "chunkhit/image_loader.h"
#include "chunkhit/loader.h"
#include "chunkhit/pack_info.h"
#include "types/enum_names.h"

namespace chunkhit {

constexpr std::array<Shuffle, 3> kOrders{Shuffle::none, Shuffle::window, Shuffle::global};
constexpr std::array<Cache, 3> kResidencies{Cache::none, Cache::compressed, Cache::decoded};

inline std::string case_name(Shuffle order, Cache cache) { return name_of(order) + ", " + name_of(cache); }

/// Random crops of 224 x 224 where images have sizes of their own; else samples as they are.
inline AugmentSpec bench_augment(const PackInfo& info) {
  AugmentSpec augment;
  if (!info.images().own_sizes) return augment;
  augment.resized_crop.height = augment.resized_crop.width = 224;
  return augment;
}

}  // namespace chunkhit
