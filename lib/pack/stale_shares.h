// Packs of an earlier split that a run would leave beside its own.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace chunkhit {

/// Names the folders in `output` that hold a finished share of a split of the same list, but are none of
/// `wanted`: their samples would also be in packs of this run. Folders of other lists and of no split are not
/// named.
[[nodiscard]] std::vector<std::string> stale_shares(const std::string& output, std::uint64_t input_xxh3,
                                                    const std::set<std::string>& wanted);

}  // namespace chunkhit
