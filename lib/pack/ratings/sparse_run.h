// Packing of ratings that are no files.
#pragma once

#include "chunkhit/pack.h"
#include "ratings/rating_reader.h"

namespace chunkhit {

/// pack_sparse of what a reader gives, in the place of files.
[[nodiscard]] PackSparseReport pack_sparse_reader(const PackSparseSpec& spec,
                                                  const PackSparseOptions& options, RatingReader& reader);

}  // namespace chunkhit
