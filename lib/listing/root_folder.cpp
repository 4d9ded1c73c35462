#include "listing/root_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <memory>
#include <numeric>

#include "listing/like_names.h"

namespace chunkhit {
namespace {

// O_NONBLOCK keeps the opening of a FIFO from waiting for its writer.
constexpr int kOpenFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
constexpr int kMaxTries = 100;

int open_beneath(int folder, const char* path, bool follow_symlinks) {
  open_how how{};
  how.flags = kOpenFlags;
  how.resolve = RESOLVE_NO_MAGICLINKS | (follow_symlinks ? 0 : RESOLVE_BENEATH);
  // EAGAIN: something was renamed while `..` was resolved.
  for (int tries = 0;; ++tries) {
    const auto fd = static_cast<int>(::syscall(SYS_openat2, folder, path, &how, sizeof how));
    if (fd >= 0 || (errno != EINTR && errno != EAGAIN) || tries == kMaxTries) return fd;
  }
}

std::string file_name_of(int fd) {
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  std::array<char, PATH_MAX> target;
  const ssize_t bytes = ::readlink(link.c_str(), target.data(), target.size());
  return bytes < 0 ? "" : std::string(target.data(), static_cast<std::size_t>(bytes));
}

// Replaces `open_beneath` if the kernel or a sandbox lacks openat2, and also follows absolute links:
// finds the file without opening it, asks the kernel where it is, and only then opens it for reading. Sets
// errno to EXDEV for what leads out, as openat2 does.
int open_and_compare(int folder, const std::string& real_root, const char* path, bool follow_symlinks) {
  const FileDescriptor found(::openat(folder, path, O_PATH | O_CLOEXEC));
  if (!found.is_open()) return -1;
  if (follow_symlinks) return ::open(("/proc/self/fd/" + std::to_string(found.get())).c_str(), kOpenFlags);
  const std::string prefix = real_root == "/" ? real_root : real_root + "/";
  if (!(file_name_of(found.get()) + "/").starts_with(prefix)) {
    errno = EXDEV;
    return -1;
  }
  return ::open(("/proc/self/fd/" + std::to_string(found.get())).c_str(), kOpenFlags);
}

[[noreturn]] void throw_machine_error(const char* what, int error_number) {
  throw MachineError(what + error_text(error_number));
}

/// Returns whether the text of a path alone leads out of its folder, by `/` or by too many `..`.
bool leads_out(std::string_view path) {
  if (path.starts_with('/')) return true;
  int depth = 0;
  while (!path.empty()) {
    const std::string_view step = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(step.size() + 1, path.size()));
    if (step == "..") --depth;
    if (!step.empty() && step != "." && step != "..") ++depth;
    if (depth < 0) return true;
  }
  return false;
}

/// All that are not certainly errors of the file are errors of the machine: a disk, a network or a limit must
/// not look like a few bad images, which the pack would then lack.
FileError open_error(int error_number) {
  switch (error_number) {
    case ENOENT:
      return {FileError::Kind::missing};
    case EXDEV:
      return {FileError::Kind::outside};
    case ENOTDIR:
      return {FileError::Kind::below_no_folder};
    case ELOOP:
      return {FileError::Kind::circular};
    case ENXIO:
    case ENODEV:
      return {FileError::Kind::not_regular};
    case EACCES:
    case EPERM:
      return {FileError::Kind::denied};
    case ENAMETOOLONG:
    case EINVAL:
    case EOVERFLOW:
      return {FileError::Kind::other, error_number};
    default:
      throw_machine_error("cannot be opened: ", error_number);
  }
}

FileStamp stamp_of(const struct stat& status) {
  return {static_cast<std::uint64_t>(status.st_size),
          std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec};
}

FileError kind_error(const FileDescriptor& file, FileStamp& stamp) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) throw_machine_error("cannot be read: ", errno);
  if (S_ISDIR(status.st_mode)) return {FileError::Kind::folder};
  if (!S_ISREG(status.st_mode)) return {FileError::Kind::not_regular};
  if (status.st_size == 0) return {FileError::Kind::empty};
  stamp = stamp_of(status);
  return {};
}

/// Returns the folder that a relative path is in.
std::string parent_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, std::max<std::size_t>(1, slash));
}

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

bool is_empty_folder(int fd) {
  const std::unique_ptr<DIR, CloseFolder> folder(::fdopendir(fd));
  if (folder == nullptr) return false;
  while (const dirent* entry = ::readdir(folder.get()))
    if (std::string_view(entry->d_name) != "." && std::string_view(entry->d_name) != "..") return false;
  return true;
}

}  // namespace

FileStamp stamp_of(const InputFile& file) {
  const FileDescriptor fd = file.duplicate();
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) throw_failed_read(file.path(), "", errno);
  return stamp_of(status);
}

RootFolder::RootFolder(const std::string& path, bool follow_symlinks)
    : path_(path),
      follow_symlinks_(follow_symlinks),
      fd_(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)) {
  if (!fd_.is_open()) throw_failed_read(path, "cannot be opened as a folder: ", errno);
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr), &std::free);
  if (real == nullptr) throw_failed_read(path, "cannot be resolved: ", errno);
  real_path_ = real.get();
}

/// Makes an absolute path below the folder, by its given or its real path, relative to it.
std::string RootFolder::below_root(std::string_view path) const {
  for (std::string root : {path_, real_path_}) {
    if (!root.ends_with('/')) root.push_back('/');
    if (!root.starts_with('/') || !path.starts_with(root)) continue;
    const std::size_t begin = path.find_first_not_of('/', root.size());
    return std::string(path.substr(std::min(begin, path.size())));
  }
  return std::string(path);
}

/// The names with accents of a folder; those that have a form in common are empty.
std::unordered_map<std::string, std::string> names_by_form(int root_fd, const std::string& root,
                                                           const std::string& folder, bool follow_symlinks) {
  std::unordered_map<std::string, std::string> names;
  try {
    FolderReader reader(root_fd, root, folder, follow_symlinks);
    std::string_view entry;
    for (EntryKind kind{}; reader.next(entry, kind);) {
      const auto [first, is_first] = names.try_emplace(form_key(entry), entry);
      if (!is_first) first->second.clear();
    }
  } catch (const Error& error) {
    if (error.code() != ErrorCode::bad_data) throw;  // a file, say: it holds no names
  }
  return names;
}

/// The entry of a folder that has a name in another Unicode form; empty where none or several do.
std::string RootFolder::entry_like(const std::string& folder, const std::string& name) const {
  const std::string key = form_key(name);
  if (key.empty()) return "";
  const std::lock_guard lock(forms_->mutex);
  const auto [found, is_new] = forms_->of_folder.try_emplace(folder);
  auto& names = found->second;
  if (is_new) names = names_by_form(fd_.get(), path_, folder, follow_symlinks_);
  const auto like = names.find(key);
  return like == names.end() ? "" : like->second;
}

/// A path below the folder as the entries have it, where names differ in their Unicode form alone; else as it
/// is.
std::string RootFolder::in_form_of_entries(const std::string& below) const {
  struct stat status {};
  if (form_key(below).empty() || ::fstatat(fd_.get(), below.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 ||
      errno != ENOENT)
    return below;
  std::string found;
  for (std::size_t at = 0; at < below.size();) {
    const std::size_t end = std::min(below.find('/', at), below.size());
    const std::string name = below.substr(at, end - at), folder = found.empty() ? "." : found;
    found += (found.empty() ? "" : "/") + name;
    at = end + 1;
    if (::fstatat(fd_.get(), found.c_str(), &status, 0) == 0) continue;
    const std::string entry = entry_like(folder, name);
    if (entry.empty()) return below;
    found = folder == "." ? entry : folder + "/" + entry;
  }
  return found;
}

RootFolder::File RootFolder::open(std::string_view path) const {
  File file;
  if (path.empty()) file.error = {FileError::Kind::no_name};
  if (path.find('\0') != std::string_view::npos) file.error = {FileError::Kind::nul_in_name};
  if (file.error) return file;
  const std::string below = path.starts_with('/') ? below_root(path) : std::string(path);
  if (leads_out(below)) {
    file.error = open_error(EXDEV);
    return file;
  }
  file.fd = FileDescriptor(open_beneath(fd_.get(), below.c_str(), follow_symlinks_));
  if (!file.fd.is_open() && errno == ENOENT) {
    if (const std::string other = in_form_of_entries(below); other != below) return open(other);
    errno = ENOENT;
  }
  if (!file.fd.is_open() && (errno == ENOSYS || errno == EPERM || errno == EXDEV))
    file.fd = FileDescriptor(open_and_compare(fd_.get(), real_path_, below.c_str(), follow_symlinks_));
  file.error = file.fd.is_open() ? kind_error(file.fd, file.stamp) : open_error(errno);
  file.bytes = file.stamp.bytes;
  return file;
}

/// The last of the folders of a path that is this one counts: behind it may be no more `..`.
std::optional<std::string_view> RootFolder::rest_below(std::string_view absolute) const {
  struct stat root {};
  if (!absolute.starts_with('/') || ::fstat(fd_.get(), &root) != 0) return std::nullopt;
  std::optional<std::string_view> rest;
  for (std::size_t slash = 0; slash != std::string_view::npos; slash = absolute.find('/', slash + 1)) {
    struct stat folder {};
    if (::stat(std::string(absolute.substr(0, std::max<std::size_t>(1, slash))).c_str(), &folder) != 0) break;
    if (folder.st_dev != root.st_dev || folder.st_ino != root.st_ino) continue;
    rest = absolute.substr(std::min(absolute.find_first_not_of('/', slash), absolute.size()));
  }
  return rest;
}

FileStamp RootFolder::stamp(std::string_view path) const {
  struct stat status {};
  if (::fstatat(fd_.get(), in_form_of_entries(std::string(path)).c_str(), &status, 0) == 0)
    return stamp_of(status);
  try {
    static_cast<void>(open_error(errno));
    return {};
  } catch (const MachineError& error) {
    throw MachineError(path_ + "/" + std::string(path) + ": " + error.what());
  }
}

/// An unmounted file system leaves an empty folder at its mount point: an empty folder above a missing file
/// is an error of the machine.
void RootFolder::check_mounted(std::string_view missing_file) const {
  struct stat opened {};
  struct stat named {};
  if (::fstat(fd_.get(), &opened) != 0 || ::stat(path_.c_str(), &named) != 0 ||
      opened.st_dev != named.st_dev || opened.st_ino != named.st_ino)
    throw MachineError(path_ + ": is no longer the folder that it was when the run began");
  const std::string below = below_root(missing_file);
  if (leads_out(below)) return;
  for (std::string folder = parent_of(below);; folder = parent_of(folder)) {
    const int fd = ::openat(fd_.get(), folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0 && is_empty_folder(fd))
      throw MachineError(path_ + "/" + folder +
                         ": is empty, as a file system that is not mounted leaves it; " +
                         std::string(missing_file) + " is expected there");
    if (fd >= 0 || folder == ".") return;
  }
}

/// A store of links' targets that is not mounted has no such folder, or an empty one.
bool RootFolder::lacks(std::string_view file) const {
  constexpr int kMaxLinks = 40;  // as Linux follows at most
  std::string below = in_form_of_entries(below_root(file));
  for (int links = 0; links < kMaxLinks; ++links) {
    struct stat entry {};
    const std::string folder = parent_of(below);
    if (::fstatat(fd_.get(), below.c_str(), &entry, AT_SYMLINK_NOFOLLOW) != 0) {
      if (errno != ENOENT) return false;
      const FileDescriptor path(::openat(fd_.get(), folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
      if (links == 0 || !path.is_open()) return path.is_open();
      const int entries = ::openat(fd_.get(), folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
      return entries >= 0 && !is_empty_folder(entries);
    }
    std::array<char, PATH_MAX> target{};
    const ssize_t size = ::readlinkat(fd_.get(), below.c_str(), target.data(), target.size());
    if (size <= 0) return false;
    const std::string_view to(target.data(), static_cast<std::size_t>(size));
    below = to.starts_with('/') ? std::string(to) : folder + "/" + std::string(to);
  }
  return false;
}

// Reads one byte more than expected, so that a file that has grown is detected without another call.
FileError RootFolder::File::read(ByteBuffer& buffer) const {
  if (bytes + 1 > buffer.capacity()) ByteBuffer().swap(buffer);  // never holds old and new bytes together
  buffer.resize(bytes + 1);
  std::size_t filled = 0;
  while (filled < buffer.size()) {
    const ssize_t count = ::read(fd.get(), buffer.data() + filled, buffer.size() - filled);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_machine_error("cannot be read: ", errno);
    if (count == 0 || (filled += static_cast<std::size_t>(count)) == bytes) break;
  }
  buffer.resize(bytes);
  return {filled == bytes ? FileError::Kind::none : FileError::Kind::changed};
}

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

namespace {

/// Whether a folder is one that systems leave beside files: of Synology, Windows, Linux and macOS.
bool is_of_a_system(std::string_view name) {
  return name == "@eaDir" || name == "$RECYCLE.BIN" || name == "lost+found" || name == "__MACOSX";
}

}  // namespace

bool FolderReader::next(std::string_view& name, EntryKind& kind) {
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(static_cast<DIR*>(stream_));
    if (entry == nullptr && errno != 0) throw_failed_read(path_, "the folder cannot be read: ", errno);
    if (entry == nullptr) return false;
    if (entry->d_name[0] == '.') continue;
    name = entry->d_name;
    kind = kind_of(entry->d_name, entry->d_type);
    if (kind != EntryKind::folder || !is_of_a_system(name)) return true;
    skipped_.emplace_back(name);
  }
}

FolderId FolderReader::id() const {
  struct stat status {};
  if (::fstat(::dirfd(static_cast<DIR*>(stream_)), &status) != 0)
    throw_failed_read(path_, "the folder cannot be read: ", errno);
  return {status.st_dev, status.st_ino};
}

// Calls stat only for entries whose type the folder does not give, and for links. An entry that has vanished
// counts as a file: opening it fails.
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
  skipped_.clear();
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
    for (const std::string& skipped : reader.skipped())
      skipped_.push_back(folders_[folder].path + "/" + skipped);
  }
  sort_entries();
}

/// Detects circles of links by device and inode of the folders above.
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

/// Sorts folders by path, then entries by folder and name: the order of torchvision.
void FolderTree::sort_entries() {
  std::vector<std::uint32_t> order(folders_.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(),
            [this](auto a, auto b) { return folders_[a].path < folders_[b].path; });
  std::vector<std::uint32_t> position(folders_.size());
  for (std::uint32_t at = 0; at < order.size(); ++at) position[order[at]] = at;
  std::sort(entries_.begin(), entries_.end(), [&](const Entry& a, const Entry& b) {
    return a.folder != b.folder ? position[a.folder] < position[b.folder] : name(a) < name(b);
  });
}

}  // namespace chunkhit
