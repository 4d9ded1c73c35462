#include "pack/output_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/bytes.h"
#include "chunkhit/error.h"
#include "store/part.h"

namespace chunkhit {
namespace {

constexpr std::uint64_t kMostManifestBytes = 1ull << 30;

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
  return name == kManifestName || name == kRejectsName || name == kRunName || is_part_file(name);
}

/// What a killed run may leave: ".NAME.tmp" of a file of ours.
bool is_left_over(std::string_view name) {
  return name.size() > 5 && name.starts_with(".") && name.ends_with(".tmp") &&
         is_pack_file(name.substr(1, name.size() - 5));
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

OutputFolder::OutputFolder(const std::string& path, bool force) : path_(path) {
  make_folders(path_);
  take_lock();
  check_entries(force);
}

void OutputFolder::take_lock() {
  lock_ = FileDescriptor(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!lock_.is_open()) throw_write_error(path_, "cannot open the folder", errno);
  // A lock on the folder itself leaves no file behind and ends with the process. File systems without locks
  // go without.
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    throw Error(ErrorCode::try_again, path_ + ": another process is writing this pack");
}

void OutputFolder::check_entries(bool force) const {
  std::vector<std::string> ours;
  std::error_code error;
  std::filesystem::directory_iterator entries(path_, error);
  if (error) throw_write_error(path_, "cannot list the folder", error.value());
  for (const auto& entry : entries) {
    const std::string name = entry.path().filename().string();
    if (!is_pack_file(name) && !is_left_over(name))
      throw Error(
          ErrorCode::cannot_write,
          path_ + ": holds " + name + ", which belongs to no pack; give an empty or new folder as --output");
    if (force || is_left_over(name)) ours.push_back(name);
  }
  // The manifest goes first: a pack without it is unfinished, whatever happens meanwhile.
  if (force) remove_file(file(kManifestName));
  for (const std::string& name : ours) remove_file(file(name));
}

std::optional<Manifest> OutputFolder::finished_pack() const {
  const std::string path = file(kManifestName);
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::nullopt;
  return parse_manifest(as_text(read_file(path, kMostManifestBytes)), path);
}

std::optional<PartRecord> OutputFolder::finished_part(std::uint64_t part_index, std::uint64_t pack_id,
                                                      const std::vector<SpecEntry>& spec) const {
  const std::string path = file(part_stem(part_index) + ".json");
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::nullopt;
  const PartManifest manifest = parse_part_manifest(as_text(read_file(path, kMostManifestBytes)), path);
  if (manifest.pack_id != pack_id) throw_other_pack(path_, manifest.spec, spec);
  if (std::filesystem::file_size(file(manifest.part.file), error) != manifest.part.bytes || error)
    return std::nullopt;
  return manifest.part;
}

std::uint64_t OutputFolder::free_bytes() const {
  struct statvfs space {};
  if (::statvfs(path_.c_str(), &space) != 0) return UINT64_MAX;
  return std::uint64_t{space.f_bavail} * space.f_frsize;
}

void throw_other_pack(const std::string& path, const std::vector<SpecEntry>& before,
                      const std::vector<SpecEntry>& now) {
  const std::string difference = first_difference(before, now);
  throw Error(ErrorCode::cannot_write, path + ": holds another pack (" +
                                           (difference.empty() ? "the input list changed" : difference) +
                                           "); --force starts afresh, another --output keeps both");
}

}  // namespace chunkhit
