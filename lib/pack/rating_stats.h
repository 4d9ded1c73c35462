// What became of the input, for the manifest.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "manifest/matrix_manifest.h"
#include "pack/rating_packs.h"
#include "pack/read_stats.h"

namespace chunkhit {

/// Sums up what was read and what was made of it.
[[nodiscard]] RatingStats make_rating_stats(const ReadStats& read, const RatingPacks& packs);

}  // namespace chunkhit
