#include "input/folder_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <numeric>

#include "base/file.h"

namespace chunkhit {
FolderReader::FolderReader(int root_fd, const std::string& root, const std::string& relative_path,
                           bool follow_symlinks)
    : path_(relative_path == "." ? root : root + "/" + relative_path) {
  const int fd = ::openat(root_fd, relative_path.c_str(),
                          O_RDONLY | O_DIRECTORY | O_CLOEXEC | (follow_symlinks ? 0 : O_NOFOLLOW));
  stream_ = fd < 0 ? nullptr : ::fdopendir(fd);
  if (stream_ != nullptr) return;
  const int error_number = errno;
  if (fd >= 0) ::close(fd);
  throw_failed_read(path_, "the folder cannot be read: ", error_number);
}

FolderReader::~FolderReader() { ::closedir(static_cast<DIR*>(stream_)); }

bool FolderReader::next(std::string_view& name, EntryKind& kind) {
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(static_cast<DIR*>(stream_));
    if (entry == nullptr && errno != 0) throw_failed_read(path_, "the folder cannot be read: ", errno);
    if (entry == nullptr) return false;
    if (entry->d_name[0] == '.') continue;
    name = entry->d_name;
    kind = kind_of(entry->d_name, entry->d_type);
    return true;
  }
}

FolderId FolderReader::id() const {
  struct stat status {};
  if (::fstat(::dirfd(static_cast<DIR*>(stream_)), &status) != 0)
    throw_failed_read(path_, "the folder cannot be read: ", errno);
  return {status.st_dev, status.st_ino};
}

// Asks the file itself only where the folder does not say what it is, and what a link leads to. An entry that
// is gone by then counts as a file: opening it will tell.
EntryKind FolderReader::kind_of(const char* name, unsigned char type) const {
  if (type == DT_REG) return EntryKind::file;
  if (type == DT_DIR) return EntryKind::folder;
  if (type != DT_LNK && type != DT_UNKNOWN) return EntryKind::special;
  const int fd = ::dirfd(static_cast<DIR*>(stream_));
  struct stat status {};
  if (type == DT_UNKNOWN && ::fstatat(fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
      !S_ISLNK(status.st_mode))
    return S_ISDIR(status.st_mode)   ? EntryKind::folder
           : S_ISREG(status.st_mode) ? EntryKind::file
                                     : EntryKind::special;
  const bool to_folder = ::fstatat(fd, name, &status, 0) == 0 && S_ISDIR(status.st_mode);
  return to_folder ? EntryKind::link_to_folder : EntryKind::file;
}

void FolderTree::read(int root_fd, const std::string& root, const std::string& relative_path,
                      bool follow_symlinks) {
  folders_.clear();
  folders_.push_back({relative_path, 0, {}});
  names_.clear();
  entries_.clear();
  for (std::uint32_t folder = 0; folder < folders_.size(); ++folder) {
    FolderReader reader(root_fd, root, folders_[folder].path, follow_symlinks);
    if (follow_symlinks) folders_[folder].id = reader.id();
    if (follow_symlinks && leads_back(folder)) {
      const std::string& path = folders_[folder].path;
      add_entry(folders_[folder].parent, path.substr(path.rfind('/') + 1), EntryKind::link_to_folder);
      continue;
    }
    std::string_view name;
    EntryKind kind{};
    while (reader.next(name, kind)) {
      if (kind == EntryKind::folder || (follow_symlinks && kind == EntryKind::link_to_folder))
        folders_.push_back({folders_[folder].path + "/" + std::string(name), folder, {}});
      else
        add_entry(folder, name, kind);
    }
  }
  sort_entries();
}

bool FolderTree::leads_back(std::uint32_t folder) const {
  for (std::uint32_t above = folder; above != 0;) {
    above = folders_[above].parent;
    if (folders_[above].id == folders_[folder].id) return true;
  }
  return false;
}

void FolderTree::add_entry(std::uint32_t folder, std::string_view name, EntryKind kind) {
  entries_.push_back({names_.size(), folder, static_cast<std::uint16_t>(name.size()), kind});
  names_ += name;
}

std::string FolderTree::path(std::size_t index) const {
  const Entry& entry = entries_[index];
  std::string path = folders_[entry.folder].path;
  path += '/';
  path += name(entry);
  return path;
}

void FolderTree::sort_entries() {
  std::vector<std::uint32_t> order(folders_.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(),
            [this](auto a, auto b) { return folders_[a].path < folders_[b].path; });
  std::vector<std::uint32_t> place(folders_.size());
  for (std::uint32_t at = 0; at < order.size(); ++at) place[order[at]] = at;
  std::sort(entries_.begin(), entries_.end(), [&](const Entry& a, const Entry& b) {
    return a.folder != b.folder ? place[a.folder] < place[b.folder] : name(a) < name(b);
  });
}

}  // namespace chunkhit
