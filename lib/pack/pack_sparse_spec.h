// The spec of pack-sparse as recorded text, and whether it makes sense.
#pragma once

#include <string>
#include <vector>

#include "manifest/manifest.h"
#include "pack/compress_choice.h"
#include "pack/pack_sparse.h"

namespace chunkhit {

/// Every choice that the output depends on, under its flag's name. `reuse_ids` stands for the columns that
/// are reused, whatever the path to them.
[[nodiscard]] std::vector<SpecEntry> recorded_spec(const PackSparseSpec& spec, const std::string& reuse_ids,
                                                   const std::string& split_name);

/// Tells the filter that a spec means; throws usage.
[[nodiscard]] CompressChoice compress_choice(const PackSparseSpec& spec);

/// Names the packs that a spec makes, train first: one empty name without a split.
[[nodiscard]] std::vector<std::string> pack_names(const RatingSplitSpec& split);

/// Checks the spec at the door; throws usage naming the flag.
void check_spec(const PackSparseSpec& spec);

}  // namespace chunkhit
