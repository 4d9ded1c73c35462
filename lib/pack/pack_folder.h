// The folder of a pack: what it may hold, and what it holds.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "manifest/manifest.h"

namespace chunkhit {

/// The folder of a pack that is named by its folder or its manifest.json, without a slash at its end.
[[nodiscard]] std::string pack_folder_of(const std::string& path);

/// The kind that alone has a file of this name, while a pack is written, too; null where any may have it.
[[nodiscard]] const PackKind* kind_of_file(std::string_view name);

/// Whether a name is what a run writes aside, and leaves when it is killed: a file of a pack, or what does
/// not fit into memory.
[[nodiscard]] bool is_left_over(std::string_view name);

/// Lists the names in a folder; throws cannot_write where it cannot be read.
[[nodiscard]] std::vector<std::string> folder_entries(const std::string& folder);

/// The format that a folder's manifest says it has; empty where there is no manifest of ours.
[[nodiscard]] std::string held_format(const std::string& folder);

/// Whether a folder's manifest says that it is a pack of this kind.
[[nodiscard]] inline bool holds_pack(const std::string& folder, const PackKind& kind) {
  return held_format(folder) == kind.format;
}

/// Returns the name of an entry that no pack command wrote, or "" if all but `except` may be removed. Beside
/// a sealed manifest a name of a pack's file suffices. Without one the file must also begin like such a file.
[[nodiscard]] std::string unknown_file(const std::string& folder, const std::set<std::string>& except = {});

/// Throws cannot_write where a folder holds such an entry.
void check_only_our_files(const std::string& folder, const std::set<std::string>& except = {});

/// Whether a folder holds a pack of matrices, finished or begun, and nothing else.
[[nodiscard]] bool is_matrix_pack(const std::string& folder);

/// Names the folders in `output` that hold a finished share of a split of the same list, but are none of
/// `wanted`: their samples would also be in packs of this run. Folders of other lists and of no split are not
/// named.
[[nodiscard]] std::vector<std::string> stale_shares(const std::string& output, std::uint64_t input_xxh3,
                                                    const std::set<std::string>& wanted);

}  // namespace chunkhit
