// What became of the input, for the manifest.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "manifest/matrix_manifest.h"
#include "pack/rating_account.h"
#include "pack/rating_packs.h"

namespace chunkhit {

/// Sums up what was read and what was made of it.
[[nodiscard]] MatrixAccount make_matrix_account(const RatingAccount& read, const RatingPacks& packs);

}  // namespace chunkhit
