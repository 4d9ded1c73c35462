// Files and folders that are written: aside, flushed, and renamed into place.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "base/aside_name.h"
#include "base/file.h"
#include "base/remote/url.h"
#include "base/throw_error.h"
#include "base/words.h"
#include "chunkhit/error.h"

namespace chunkhit {
namespace {

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

/// Creates a temporary file with a lock, by which other processes see that its writer is alive; returns -1 on
/// failure.
int create_aside(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (fd >= 0) ::flock(fd, LOCK_SH | LOCK_NB);  // shared: HDF5's own readers take such a lock, too
  return fd;
}

void sync_folder(const std::string& folder) {
  const FileDescriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.is_open()) throw_write_error(folder, "cannot open the folder", errno);
  // Some network file systems cannot flush a folder; they keep its entries on the server anyway.
  if (::fsync(fd.get()) != 0 && errno != EINVAL && errno != EROFS)
    throw_write_error(folder, "cannot flush the folder to disk", errno);
}

}  // namespace

PendingFile::PendingFile(std::string path) : path_(std::move(path)), aside_path_(make_aside_path(path_)) {
  // A rename would put the file in the place of a device: /dev/null, say.
  struct stat there {};
  if (::stat(path_.c_str(), &there) == 0 && !S_ISREG(there.st_mode) && !S_ISDIR(there.st_mode)) {
    aside_path_.clear();
    throw Error(ErrorCode::cannot_write, path_ + ": cannot be written: it is there and is no file");
  }
  fd_ = FileDescriptor(create_aside(aside_path_));
  if (!fd_.is_open() && errno == ENOENT) {
    // Another run that made the folder has removed it again while it was empty.
    make_folders(folder_of(path_));
    fd_ = FileDescriptor(create_aside(aside_path_));
  }
  if (!fd_.is_open()) throw_write_error(std::exchange(aside_path_, ""), "cannot create", errno);
}

PendingFile::PendingFile(PendingFile&& other) noexcept
    : path_(std::move(other.path_)),
      aside_path_(std::exchange(other.aside_path_, "")),
      fd_(std::move(other.fd_)),
      bytes_(other.bytes_) {}

PendingFile::~PendingFile() {
  if (!aside_path_.empty()) ::unlink(aside_path_.c_str());
}

void PendingFile::append(Bytes bytes) {
  write_at(bytes_, bytes);
  bytes_ += bytes.size();
}

int write_all_at(int fd, std::uint64_t offset, Bytes bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written == 0 ? ENOSPC : errno;
    offset += static_cast<std::uint64_t>(written);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return 0;
}

void PendingFile::write_at(std::uint64_t offset, Bytes bytes) {
  if (const int error = write_all_at(fd_.get(), offset, bytes); error != 0)
    throw_write_error(path_, "cannot write", error);
}

void PendingFile::read_at(std::uint64_t offset, MutableBytes out) const {
  while (!out.empty()) {
    const ssize_t got = ::pread(fd_.get(), out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) throw_write_error(path_, "cannot read what was written", got == 0 ? EIO : errno);
    offset += static_cast<std::uint64_t>(got);
    out = out.subspan(static_cast<std::size_t>(got));
  }
}

void PendingFile::flush() {
  if (!fd_.is_open()) return;
  if (::fsync(fd_.get()) != 0) throw_write_error(path_, "cannot flush to disk", errno);
  const int fd = fd_.release();
  // Interrupted or not, the descriptor is closed on Linux; any other error means that bytes may be lost.
  if (::close(fd) != 0 && errno != EINTR) throw_write_error(path_, "cannot close", errno);
}

void PendingFile::publish() {
  flush();
  if (::rename(aside_path_.c_str(), path_.c_str()) != 0) {
    if (errno != ENOENT) throw_write_error(path_, "cannot rename into place", errno);
    throw Error(ErrorCode::try_again,
                path_ + ": its temporary file is gone, removed by another run or program; rerun to resume");
  }
  aside_path_.clear();
  sync_folder(folder_of(path_));
}

void publish_file(const std::string& path, std::string_view text) {
  PendingFile file(path);
  file.append(as_bytes(text));
  file.publish();
}

bool link_file(const std::string& from, const std::string& to) {
  const std::string aside = make_aside_path(to);
  if (::linkat(AT_FDCWD, from.c_str(), AT_FDCWD, aside.c_str(), AT_SYMLINK_FOLLOW) != 0) {
    // EPERM: no links on this file system, or none to files of other users.
    for (const int error_number : {EXDEV, EPERM, EMLINK, EOPNOTSUPP, ENOSYS})
      if (errno == error_number) return false;
    if (errno == ENOENT) throw_failed_read(from, "", errno);
    throw_write_error(to, "cannot link", errno);
  }
  const int renamed = ::rename(aside.c_str(), to.c_str());
  const int error_number = errno;
  // Renamed over a name of the same file, both names stay.
  ::unlink(aside.c_str());
  if (renamed != 0) throw_write_error(to, "cannot rename into place", error_number);
  return true;
}

void make_folders(const std::string& path, unsigned mode) {
  if (is_url(path))
    throw_usage(printable_text(path) +
                ": is a URL, expected a local folder: write there, and upload "
                "it by the tools of the storage");
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return;
  const std::string parent = folder_of(path);
  if (parent != path && parent != ".") make_folders(parent);
  if (::mkdir(path.c_str(), mode) != 0 && errno != EEXIST)
    throw_write_error(path, "cannot create the folder", errno);
  if (!std::filesystem::is_directory(path, error))
    throw_write_error(path, "cannot create the folder", ENOTDIR);
  sync_folder(parent);
}

std::uint64_t free_bytes(const std::string& path) {
  struct statvfs space {};
  // A network file system may report nothing.
  if (::statvfs(path.c_str(), &space) != 0 || space.f_blocks == 0) return UINT64_MAX;
  return std::uint64_t{space.f_bavail} * space.f_frsize;
}

void throw_write_error(const std::string& path, const char* what, int error_number) {
  std::string message = path + ": " + what + ": " + error_text(error_number);
  struct statvfs space {};
  if (error_number == ENOSPC && ::statvfs(folder_of(path).c_str(), &space) == 0)
    message += " (" + bytes_text(static_cast<double>(space.f_bavail) * static_cast<double>(space.f_frsize)) +
               " and " + count_text(space.f_favail) + " inodes are free)";
  throw Error(ErrorCode::cannot_write, message);
}

}  // namespace chunkhit
