// The packs of a split, as the recorded spec of one of them names them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "manifest/part_record.h"

namespace chunkhit {

/// Value of a recorded choice; empty where there is none, or "none".
[[nodiscard]] std::string spec_value(const std::vector<SpecEntry>& spec, std::string_view name);

/// Names of all packs that the run of a pack wrote: of a `split` ("train=0.9,val=0.1"), of `split_folders`
/// ("train,val") or of `split_by`; empty without a split, and by users-by-id, where the users decide it.
[[nodiscard]] std::vector<std::string> split_pack_names(const std::vector<SpecEntry>& spec);

}  // namespace chunkhit
