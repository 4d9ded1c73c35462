#include "pack/output_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/aside_name.h"
#include "base/bytes.h"
#include "base/throw_error.h"
#include "chunkhit/error.h"
#include "manifest/run_record.h"
#include "pack/parallel_files.h"

namespace chunkhit {
namespace {

std::string kind_text(PackKind kind) {
  return kind == PackKind::images ? "a pack of images (pack-images)" : "a pack of matrices (pack-sparse)";
}

[[noreturn]] void refuse_other_kind(const std::string& path, PackKind found) {
  throw Error(ErrorCode::cannot_write,
              path + ": holds " + kind_text(found) + "; `force` removes it, another `output` keeps both");
}

/// Returns whether a folder is a finished pack. A manifest alone is no proof: other programs write one, too.
bool is_finished_pack(const std::filesystem::path& folder) {
  std::error_code error;
  return std::filesystem::exists(folder / kManifestName, error) &&
         (std::filesystem::exists(folder / kRejectsName, error) ||
          std::filesystem::exists(folder / kItemsName, error) || !held_format(folder.string()).empty());
}

/// Lists the folders of a path that do not exist, the deepest first.
std::vector<std::string> missing_folders(const std::string& path) {
  std::vector<std::string> missing;
  std::error_code error;
  std::filesystem::path at(path);
  while (!at.empty() && !std::filesystem::exists(std::filesystem::symlink_status(at, error))) {
    missing.push_back(at.string());
    at = at.parent_path();
  }
  return missing;
}

constexpr int kFolderFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

/// Makes a folder and opens it; retries if another run that made it removes it in between.
FileDescriptor open_made_folder(const std::string& path) {
  for (int tries = 1;; ++tries) {
    make_folders(path);
    FileDescriptor folder(::open(path.c_str(), kFolderFlags));
    if (folder.is_open() || errno != ENOENT || tries == 3) return folder;
  }
}

FileDescriptor lock_folder(const std::string& path, FileDescriptor lock, int operation = LOCK_EX) {
  if (!lock.is_open()) throw_write_error(path, "cannot open the folder", errno);
  // A lock on the folder itself leaves no file behind and ends with the process. On file systems without
  // locks there is none.
  if (::flock(lock.get(), operation | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    throw Error(ErrorCode::try_again, path + ": another process is writing this pack: wait until it is done");
  return lock;
}

/// A folder with files of the other kind of pack is not overwritten.
void check_kind(const std::string& path, PackKind kind) {
  const PackKind other = kind == PackKind::images ? PackKind::matrices : PackKind::images;
  for (const std::string& name : folder_entries(path))
    if (is_of_other_kind(name, kind)) refuse_other_kind(path, other);
}

/// Returns a manifest's format; the error for a damaged manifest says how to repair it.
std::string format_of(std::string_view text, const std::string& path) {
  try {
    return manifest_format(text, path);
  } catch (const Error& error) {
    const std::string run = std::filesystem::path(path).parent_path() / kRunName;
    std::error_code failure;
    if (std::filesystem::exists(run, failure)) {
      const ByteBuffer run_text = read_file(run, kMaxManifestBytes);
      if (is_merge_run(as_text(run_text))) throw;  // no packing command made it
    }
    throw Error(error.code(),
                std::string(error.what()) + "; remove this file, and the same command writes it again");
  }
}

/// Reads a folder's manifest, which must have this format; nullopt if there is none.
std::optional<std::string> manifest_text(const std::string& folder, std::string_view format) {
  const std::string path = folder + "/" + std::string(kManifestName);
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::nullopt;
  std::string text(as_text(read_file(path, kMaxManifestBytes)));
  const std::string found = format_of(text, path);
  if (found != format && (found == kImagesFormat || found == kMatrixFormat))
    refuse_other_kind(folder, found == kImagesFormat ? PackKind::images : PackKind::matrices);
  return text;
}

/// Throws cannot_write for a merged pack: no packing command can resume it.
void check_not_merged(const PackManifest& manifest, const std::string& folder) {
  if (manifest.is_merged)
    throw Error(ErrorCode::cannot_write,
                folder +
                    ": holds a merged pack (pack-merge), which is finished and cannot be packed further; "
                    "`force` removes it, another `output` keeps it");
}

/// Throws cannot_write if a missing folder could not be made.
void check_can_be_made(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 && errno != ENOENT)
    throw_write_error(path, "cannot create the folder", errno);
  std::filesystem::path at = std::filesystem::absolute(path);
  std::error_code error;
  while (!std::filesystem::exists(std::filesystem::symlink_status(at, error)) && at.has_relative_path())
    at = at.parent_path();
  if (!std::filesystem::is_directory(at, error)) throw_write_error(path, "cannot create the folder", ENOTDIR);
  if (::access(at.c_str(), W_OK | X_OK) != 0) throw_write_error(path, "cannot create the folder", errno);
}

/// Returns whether a temporary file may be removed; `force` includes recent ones of other machines.
bool is_unowned(const std::string& folder, const std::string& name, bool force) {
  const AsideWriter writer = find_aside_writer(folder, name);
  return writer == AsideWriter::is_gone || (force && writer == AsideWriter::unknown);
}

void remove_file(const std::string& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) throw_write_error(path, "cannot remove", errno);
}

}  // namespace

std::string part_stem(std::uint64_t part_index) {
  std::string digits = std::to_string(part_index);
  if (digits.size() < 5) digits.insert(0, 5 - digits.size(), '0');
  return "part-" + digits;
}

void check_outside_packs(const std::string& output) {
  std::error_code error;
  std::filesystem::path at = std::filesystem::weakly_canonical(std::filesystem::absolute(output), error);
  while (at.has_relative_path()) {
    at = at.parent_path();
    if (is_finished_pack(at))
      throw_usage("`output`: " + output + " lies in the pack " + at.string() + "; choose a folder outside");
  }
}

/// Tasks of a plan share the folder and remove nothing; a single run owns it and clears temporary files.
OutputFolder::OutputFolder(const std::string& path, bool force, PackKind kind, bool is_shared) : path_(path) {
  if (is_shared) {
    lock_ = lock_folder(path_, open_made_folder(path_), LOCK_SH);
    return;
  }
  made_ = missing_folders(path_);
  lock_ = lock_folder(path_, open_made_folder(path_));
  check_only_our_files(path_);
  remove_entries(force);
  check_kind(path_, kind);
}

void OutputFolder::check(const std::string& path, bool force, PackKind kind) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) {
    check_can_be_made(path);
    return;
  }
  const FileDescriptor lock = lock_folder(path, FileDescriptor(::open(path.c_str(), kFolderFlags)));
  check_only_our_files(path);
  if (!force) check_kind(path, kind);
}

/// Removes the folders that this run made, as long as they are empty.
OutputFolder::~OutputFolder() {
  for (const std::string& folder : made_)
    if (::rmdir(folder.c_str()) != 0) break;
}

void OutputFolder::remove_entries(bool all) const {
  // The manifest goes first: a pack without it is unfinished, whatever happens meanwhile.
  if (all) remove_file(file(kManifestName));
  for (const std::string& name : folder_entries(path_))
    if (is_left_over(name) ? is_unowned(path_, name, all) : all) remove_file(file(name));
}

void OutputFolder::remove_others(const std::set<std::string>& names) const {
  for (const std::string& name : folder_entries(path_))
    if (!names.contains(name) && !is_left_over(name)) remove_file(file(name));
}

void OutputFolder::clear() const { remove_entries(true); }

void OutputFolder::remove() const {
  clear();
  if (::rmdir(path_.c_str()) != 0) throw_write_error(path_, "cannot remove", errno);
}

std::optional<Manifest> OutputFolder::held_images(const std::string& folder) {
  const std::optional<std::string> text = manifest_text(folder, kImagesFormat);
  if (!text) return std::nullopt;
  return parse_manifest(*text, folder + "/" + std::string(kManifestName));
}

std::optional<Manifest> OutputFolder::finished_pack(const std::string& folder) {
  std::optional<Manifest> held = held_images(folder);
  if (held) check_not_merged(*held, folder);
  return held;
}

std::optional<MatrixManifest> OutputFolder::finished_matrix_pack(const std::string& folder) {
  const std::optional<std::string> text = manifest_text(folder, kMatrixFormat);
  if (!text) return std::nullopt;
  MatrixManifest manifest = parse_matrix_manifest(*text, folder + "/" + std::string(kManifestName));
  check_not_merged(manifest, folder);
  return manifest;
}

bool OutputFolder::has(const std::string& name) const {
  std::error_code error;
  return std::filesystem::exists(file(name), error);
}

bool OutputFolder::holds(const std::string& name, std::uint64_t bytes) const {
  std::error_code error;
  return std::filesystem::file_size(file(name), error) == bytes && !error;
}

std::optional<PartManifest> whole_part(const std::string& folder, const PackManifest& manifest,
                                       const PartRecord& listed) {
  std::error_code error;
  if (std::filesystem::file_size(folder + "/" + listed.file, error) != listed.bytes || error)
    return std::nullopt;
  const std::string path = folder + "/" + part_record_name(listed.file);
  if (!std::filesystem::exists(path, error)) return std::nullopt;
  try {
    PartManifest own = parse_part_manifest(as_text(read_file(path, kMaxManifestBytes)), path);
    const bool has_name = own.part.file == listed.file || manifest.is_merged;
    if (own.pack_id == manifest.pack_id_of(listed) && has_name && own.part.xxh3 == listed.xxh3) return own;
  } catch (const Error& failure) {
    if (failure.code() != ErrorCode::bad_data) throw;  // says nothing about the part itself
  }
  return std::nullopt;
}

bool OutputFolder::is_whole(const PackManifest& manifest, const std::vector<FileRecord>& tables) const {
  std::atomic<bool> are_whole{true};
  for_each_file(manifest.parts.size(), [&](std::size_t part_index) {
    if (are_whole && !whole_part(path_, manifest, manifest.parts[part_index])) are_whole = false;
  });
  return are_whole &&
         std::ranges::all_of(tables, [&](const FileRecord& table) { return holds(table.file, table.bytes); });
}

/// Makes a finished pack unfinished again, without its damaged parts. The manifest goes first.
void OutputFolder::reopen(const PackManifest& manifest) const {
  remove_file(file(kManifestName));
  for (std::size_t part_index = 0; part_index < manifest.parts.size(); ++part_index) {
    const std::string& part = manifest.parts[part_index].file;
    if (!whole_part(path_, manifest, manifest.parts[part_index]))
      remove_part(part_index, std::string_view(part).substr(part.rfind('.')));
  }
}

// The record is removed first: without it no run takes the other files for a finished part.
void OutputFolder::remove_part(std::uint64_t part_index, std::string_view extension) const {
  for (const std::string_view end : {std::string_view(".json"), kInputsExtension, extension})
    remove_file(file(part_stem(part_index) + std::string(end)));
}

std::optional<PartManifest> OutputFolder::part_manifest(const std::string& folder, std::uint64_t part_index) {
  const std::string path = folder + "/" + part_stem(part_index) + ".json";
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::nullopt;
  return parse_part_manifest(as_text(read_file(path, kMaxManifestBytes)), path);
}

std::string OutputFolder::other_writers_notice() const {
  std::string text;
  for (const std::string& name : folder_entries(path_))
    if (is_left_over(name) && find_aside_writer(path_, name) == AsideWriter::unknown)
      text.append(text.empty() ? "" : "; ").append(name);
  if (text.empty()) return text;
  return path_ + ": another machine writes, or left within a day: " + text +
         "; if none writes there any more, remove it";
}

std::uint64_t OutputFolder::free_bytes() const { return chunkhit::free_bytes(path_); }

}  // namespace chunkhit
