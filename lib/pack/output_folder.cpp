#include "pack/output_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/bytes.h"
#include "chunkhit/error.h"
#include "store/part.h"

namespace chunkhit {
namespace {

bool is_part_file(std::string_view name) {
  if (!name.starts_with("part-")) return false;
  const std::size_t dot = name.find('.');
  if (dot == std::string_view::npos || dot < 10) return false;
  if (name.substr(5, dot - 5).find_first_not_of("0123456789") != std::string_view::npos) return false;
  const std::string_view extension = name.substr(dot);
  if (extension == ".json") return true;
  for (const Container& container : containers())
    if (extension == container.extension) return true;
  return false;
}

bool is_pack_file(std::string_view name) {
  return name == kManifestName || name == kRejectsName || name == kUsersName || name == kItemsName ||
         name == kRunName || is_part_file(name);
}

/// The other kind's files that this kind has not, while a pack is written, too.
bool is_of_other_kind(std::string_view name, PackKind kind) {
  if (kind == PackKind::images) return name == kUsersName || name == kItemsName;
  return name == kRejectsName || (is_part_file(name) && name.ends_with(".json"));
}

std::string kind_text(PackKind kind) {
  return kind == PackKind::images ? "a pack of images (pack-images)" : "a pack of matrices (pack-sparse)";
}

[[noreturn]] void refuse_other_kind(const std::string& path, PackKind found) {
  throw Error(ErrorCode::cannot_write,
              path + ": holds " + kind_text(found) + "; --force removes it, another --output keeps both");
}

/// Other programs have a manifest.json, too.
bool is_finished_pack(const std::filesystem::path& folder) {
  std::error_code error;
  return std::filesystem::exists(folder / kManifestName, error) &&
         (std::filesystem::exists(folder / kRejectsName, error) ||
          std::filesystem::exists(folder / kItemsName, error));
}

/// What a killed run may leave: ".NAME.tmp" of a file of ours.
bool is_left_over(std::string_view name) {
  return name.size() > 5 && name.starts_with(".") && name.ends_with(".tmp") &&
         is_pack_file(name.substr(1, name.size() - 5));
}

/// The folders of a path that are not there, the deepest first.
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
      throw Error(ErrorCode::usage,
                  "--output: " + output + " lies in the pack " + at.string() + "; choose a folder outside");
  }
}

std::string held_format(const std::string& folder) {
  const std::string path = folder + "/" + std::string(kManifestName);
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return "";
  try {
    return manifest_format(as_text(read_file(path, kMostManifestBytes)), path);
  } catch (const Error&) {
    return "";  // other programs have a manifest.json, too
  }
}

bool is_matrix_pack(const std::string& folder) {
  std::error_code error;
  if (!std::filesystem::is_directory(std::filesystem::symlink_status(folder, error))) return false;
  bool has_manifest = false;
  bool has_items = false;
  std::filesystem::directory_iterator entries(folder, error);
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    const std::string name = entries->path().filename().string();
    if (is_of_other_kind(name, PackKind::matrices) || (!is_pack_file(name) && !is_left_over(name)))
      return false;
    has_manifest = has_manifest || name == kManifestName;
    has_items = has_items || name == kItemsName;
  }
  // items.csv is the first that a run writes, the manifest the last.
  return !error && (has_manifest ? held_format(folder) == kMatrixFormat : has_items);
}

OutputFolder::OutputFolder(const std::string& path, bool force, PackKind kind) : path_(path) {
  made_ = missing_folders(path_);
  make_folders(path_);
  take_lock();
  check_entries();
  remove_entries(force);
  const PackKind other = kind == PackKind::images ? PackKind::matrices : PackKind::images;
  for (const std::string& name : entries())
    if (is_of_other_kind(name, kind)) refuse_other_kind(path_, other);
}

OutputFolder::~OutputFolder() {
  for (const std::string& folder : made_)
    if (::rmdir(folder.c_str()) != 0) break;
}

void OutputFolder::take_lock() {
  lock_ = FileDescriptor(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!lock_.is_open()) throw_write_error(path_, "cannot open the folder", errno);
  // A lock on the folder itself leaves no file behind and ends with the process. File systems without locks
  // go without.
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    throw Error(ErrorCode::try_again, path_ + ": another process is writing this pack");
}

std::vector<std::string> OutputFolder::entries() const {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator entries(path_, error);
  if (error) throw_write_error(path_, "cannot list the folder", error.value());
  for (const auto& entry : entries) names.push_back(entry.path().filename().string());
  return names;
}

void OutputFolder::check_entries() const {
  for (const std::string& name : entries())
    if (!is_pack_file(name) && !is_left_over(name))
      throw Error(
          ErrorCode::cannot_write,
          path_ + ": holds " + name + ", which belongs to no pack; give an empty or new folder as --output");
}

void OutputFolder::remove_entries(bool all) const {
  // The manifest goes first: a pack without it is unfinished, whatever happens meanwhile.
  if (all) remove_file(file(kManifestName));
  for (const std::string& name : entries())
    if (all || is_left_over(name)) remove_file(file(name));
}

void OutputFolder::clear() const { remove_entries(true); }

void OutputFolder::remove() const {
  clear();
  if (::rmdir(path_.c_str()) != 0) throw_write_error(path_, "cannot remove", errno);
}

std::optional<std::string> OutputFolder::manifest_text(std::string_view format) const {
  const std::string path = file(kManifestName);
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::nullopt;
  std::string text(as_text(read_file(path, kMostManifestBytes)));
  const std::string found = manifest_format(text, path);
  if (found != format && (found == kImagesFormat || found == kMatrixFormat))
    refuse_other_kind(path_, found == kImagesFormat ? PackKind::images : PackKind::matrices);
  return text;
}

std::optional<Manifest> OutputFolder::finished_pack() const {
  const std::optional<std::string> text = manifest_text(kImagesFormat);
  return text ? std::optional(parse_manifest(*text, file(kManifestName))) : std::nullopt;
}

std::optional<MatrixManifest> OutputFolder::finished_matrix_pack() const {
  const std::optional<std::string> text = manifest_text(kMatrixFormat);
  return text ? std::optional(parse_matrix_manifest(*text, file(kManifestName))) : std::nullopt;
}

bool OutputFolder::holds(const std::string& name, std::uint64_t bytes) const {
  std::error_code error;
  return std::filesystem::file_size(file(name), error) == bytes && !error;
}

bool OutputFolder::is_whole(const Manifest& manifest, std::size_t part_index) const {
  const PartRecord& listed = manifest.parts[part_index];
  if (!holds(listed.file, listed.bytes)) return false;
  try {
    const std::optional<PartManifest> own = part_manifest(part_index);
    return own && own->pack_id == manifest.pack_id && own->part.file == listed.file &&
           own->part.xxh3 == listed.xxh3;
  } catch (const Error&) {
    return false;
  }
}

bool OutputFolder::is_whole(const Manifest& manifest) const {
  for (std::size_t part_index = 0; part_index < manifest.parts.size(); ++part_index)
    if (!is_whole(manifest, part_index)) return false;
  return holds(std::string(kRejectsName), manifest.rejects_bytes);
}

bool OutputFolder::is_whole(const MatrixManifest& manifest) const {
  for (const PartRecord& part : manifest.parts)
    if (!holds(part.file, part.bytes)) return false;
  return holds(manifest.users.file, manifest.users.bytes) && holds(manifest.items.file, manifest.items.bytes);
}

void OutputFolder::reopen(const Manifest& manifest) const {
  remove_file(file(kManifestName));
  for (std::size_t part_index = 0; part_index < manifest.parts.size(); ++part_index) {
    if (is_whole(manifest, part_index)) continue;
    remove_file(file(part_stem(part_index) + ".json"));
    remove_file(file(manifest.parts[part_index].file));
  }
}

std::optional<PartManifest> OutputFolder::part_manifest(std::uint64_t part_index) const {
  const std::string path = file(part_stem(part_index) + ".json");
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::nullopt;
  return parse_part_manifest(as_text(read_file(path, kMostManifestBytes)), path);
}

std::uint64_t OutputFolder::free_bytes() const { return chunkhit::free_bytes(path_); }

}  // namespace chunkhit
