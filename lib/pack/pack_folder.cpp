#include "pack/pack_folder.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/aside_name.h"
#include "base/bytes.h"
#include "base/spill_file.h"
#include "base/throw_error.h"
#include "chunkhit/error.h"
#include "manifest/id_list.h"
#include "manifest/plan.h"
#include "manifest/run_record.h"
#include "store/part.h"

namespace chunkhit {

std::string pack_folder_of(const std::string& path) {
  std::filesystem::path folder(path);
  if (folder.filename() == kManifestName) folder = folder.parent_path();
  std::string text = folder.empty() ? "." : folder.string();
  while (text.size() > 1 && text.ends_with('/')) text.pop_back();
  return text;
}

namespace {

/// Our parts and manifests have this mark near their beginning: "chunkhit shard", "chunkhit_format",
/// "chunkhit-matrix".
constexpr std::string_view kOwnMark = "chunkhit";
constexpr std::uint64_t kMarkedBytes = 64 << 10;

/// How the other files of a pack begin and continue; names of labels may be between the two.
struct FileBegin {
  std::string_view name;
  std::string_view text;
  std::string_view followed_by;
};
constexpr std::array<FileBegin, 5> kFileBegins{{{kUsersName, kUsersHeader, "\n"},
                                                {kItemsName, kItemsHeader, "\n"},
                                                {kRejectsName, "row,", ",reason\n"},
                                                {kWarningsName, "row,", ",warning\n"},
                                                {kRunName, "{\n  \"tool\": \"", "\n  \"command_line\": \""}}};

/// Matches part-NNNNN with one of our extensions.
bool is_part_file(std::string_view name) {
  if (!name.starts_with("part-")) return false;
  const std::size_t dot = name.find('.');
  if (dot == std::string_view::npos || dot < 10) return false;
  if (name.substr(5, dot - 5).find_first_not_of("0123456789") != std::string_view::npos) return false;
  const std::string_view extension = name.substr(dot);
  if (extension == ".json" || extension == kInputsExtension) return true;
  const auto& all = containers();
  return std::any_of(all.begin(), all.end(),
                     [&](const Container& container) { return extension == container.extension; });
}

bool is_pack_file(std::string_view name) {
  return name == kManifestName || name == kPlanName || name == kPlanRowsName || is_part_file(name) ||
         std::any_of(kFileBegins.begin(), kFileBegins.end(),
                     [&](const FileBegin& begin) { return plain_table_name(name) == begin.name; });
}

/// Returns the first bytes of a file, or an empty text if it cannot be read.
std::string first_text(const std::string& path) {
  try {
    const InputFile file(path);
    ByteBuffer bytes(std::min(file.byte_count(), kMarkedBytes));
    file.read_at(0, bytes);
    return std::string(as_text(bytes));
  } catch (const Error&) {
    return "";
  }
}

/// Returns whether a file is empty, as a crash may leave it; removing it loses nothing.
bool is_empty_file(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error) && std::filesystem::file_size(path, error) == 0 &&
         !error;
}

/// Returns whether a file's beginning is one that a pack command writes.
bool begins_as_ours(const std::string& folder, std::string_view name) {
  std::string path = folder;
  path.append("/").append(name);
  std::string text = first_text(path);
  if (text.starts_with("pack,row,")) text.erase(0, 5);  // of a merged pack
  const auto* const begin = std::find_if(kFileBegins.begin(), kFileBegins.end(), [&](const FileBegin& known) {
    return plain_table_name(name) == known.name;
  });
  if (begin == kFileBegins.end()) return text.find(kOwnMark) != std::string::npos || is_empty_file(path);
  return text.starts_with(begin->text) && text.find(begin->followed_by) != std::string::npos;
}

/// Returns whether a file is ours. A damaged or truncated part still is if its record or items.csv is.
bool is_own_file(const std::string& folder, const std::string& name) {
  if (begins_as_ours(folder, name)) return true;
  if (!is_part_file(name) || name.ends_with(".json")) return false;
  return begins_as_ours(folder, name.substr(0, name.find('.')) + ".json") ||
         begins_as_ours(folder, kItemsName);
}

}  // namespace

const PackKind* kind_of_file(std::string_view name) {
  const std::string table = plain_table_name(name);
  const auto is_own = [&](const PackKind& kind) {
    return std::ranges::find(kind.tables, table) != kind.tables.end() ||
           (kind.has_inputs && is_part_file(name) && name.ends_with(kInputsExtension));
  };
  const auto* const kind = std::ranges::find_if(kPackKinds, is_own);
  return kind == kPackKinds.end() ? nullptr : kind;
}

bool is_left_over(std::string_view name) {
  const std::string_view written = name_written_aside(name);
  return is_pack_file(written) || written == kSpillName || name.starts_with(kOldSpillBegin);
}

std::vector<std::string> folder_entries(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator entries(folder, error);
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error))
    names.push_back(entries->path().filename().string());
  // Another run may have made the folder and removed it again.
  if (error && error.value() != ENOENT) throw_write_error(folder, "cannot list the folder", error.value());
  return names;
}

std::string held_format(const std::string& folder) {
  const std::string path = manifest_path(folder);
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return "";
  try {
    return manifest_format(as_text(read_file(path, kMaxManifestBytes)), path);
  } catch (const Error&) {
    return "";  // other programs have a manifest.json, too
  }
}

/// Returns the first file that no pack command wrote, by name, or by content if the folder has no manifest of
/// ours; `force` must not remove such files.
std::string unknown_file(const std::string& folder, const std::set<std::string>& except) {
  std::vector<std::string> names = folder_entries(folder);
  std::sort(names.begin(), names.end());
  std::erase_if(names, [&](const std::string& name) { return except.contains(name); });
  for (const std::string& name : names)
    if (!is_pack_file(name) && !is_left_over(name)) return name;
  if (!held_format(folder).empty()) return "";
  for (const std::string& name : names)
    if (!is_left_over(name) && !is_own_file(folder, name)) return name;
  return "";
}

bool is_matrix_pack(const std::string& folder) {
  std::error_code error;
  if (!std::filesystem::is_directory(std::filesystem::symlink_status(folder, error))) return false;
  const std::vector<std::string> names = folder_entries(folder);
  const auto is_strange = [](const std::string& name) {
    const PackKind* const kind = kind_of_file(name);
    return kind != nullptr && kind->format != kMatrixPacks.format;
  };
  if (std::any_of(names.begin(), names.end(), is_strange) || !unknown_file(folder).empty()) return false;
  const auto has = [&](std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  // items.csv is the first that a run publishes, the manifest the last.
  return has(kManifestName) ? holds_pack(folder, kMatrixPacks)
                            : has(kItemsName) || (!names.empty() && std::ranges::all_of(names, is_left_over));
}

void check_only_our_files(const std::string& folder, const std::set<std::string>& except) {
  const std::string entry = unknown_file(folder, except);
  if (entry.empty()) return;
  if (!held_format(folder + "/" + entry).empty())
    throw_cannot_write(
        folder + ": holds " + entry +
        ", a pack by itself, perhaps of an earlier split; remove it, or give another `output`");
  throw_cannot_write(folder + ": holds " + entry + ", which " +
                     (is_pack_file(entry) ? "no pack command wrote" : "belongs to no pack") +
                     "; give an empty or new folder");
}

namespace {

bool is_share_of(const std::string& folder, std::uint64_t input_xxh3) {
  if (!holds_pack(folder, kImagePacks)) return false;
  try {
    const Manifest manifest = *read_manifest(folder).images;
    return manifest.input_xxh3 == input_xxh3 && manifest.spec.has("split-name");
  } catch (const Error&) {
    return false;  // damaged: no loader reads it
  }
}

}  // namespace

std::vector<std::string> stale_shares(const std::string& output, std::uint64_t input_xxh3,
                                      const std::set<std::string>& wanted) {
  std::vector<std::string> stale;
  std::error_code error;
  if (!std::filesystem::is_directory(output, error)) return stale;
  for (const std::string& name : folder_entries(output)) {
    const std::string path = output + "/" + name;
    if (wanted.contains(name) || !std::filesystem::is_directory(std::filesystem::symlink_status(path, error)))
      continue;
    if (is_share_of(path, input_xxh3)) stale.push_back(path);
  }
  std::ranges::sort(stale);
  return stale;
}

}  // namespace chunkhit
