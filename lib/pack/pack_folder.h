// The folder of a pack: what it may hold, whose it is, its run.json.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"

namespace chunkhit {

/// Tells when a run began.
struct RunStart {
  std::string time;  ///< UTC, ISO 8601
  std::chrono::steady_clock::time_point clock;
  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - clock).count();
  }
};

/// Begins a run now.
[[nodiscard]] RunStart start_run();

/// Writes run.json aside in a pack's folder; `roots` are the folders of its images, by content_ids.
[[nodiscard]] PendingFile write_run(const std::string& folder, const std::string& tool,
                                    const std::string& command_line, const RunStart& start,
                                    std::uint32_t threads, std::map<std::uint64_t, std::string> roots);

/// The folder of a pack that is named by its folder or its manifest.json, without a slash at its end.
[[nodiscard]] std::string pack_folder_of(const std::string& path);

/// What a folder may hold: packs of one kind are not written over those of the other.
enum class PackKind { images, matrices };

/// Whether a name is one of the other kind's that this kind has not, while a pack is written, too.
[[nodiscard]] bool is_of_other_kind(std::string_view name, PackKind kind);

/// Whether a name is what a run writes aside, and leaves when it is killed: a file of a pack, or what does
/// not fit into memory.
[[nodiscard]] bool is_left_over(std::string_view name);

/// Lists the names in a folder; throws cannot_write where it cannot be read.
[[nodiscard]] std::vector<std::string> folder_entries(const std::string& folder);

/// The format that a folder's manifest says it has; empty where there is no manifest of ours.
[[nodiscard]] std::string held_format(const std::string& folder);

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
