#include "base/file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/hash.h"
#include "base/remote/remote_file.h"
#include "base/remote/url.h"
#include "base/resources.h"
#include "base/throw_error.h"
#include "chunkhit/error.h"

namespace chunkhit {
namespace {

constexpr std::size_t kHashBlockBytes = 1 << 20;
constexpr std::uint64_t kSectorBytes = 4096;

[[noreturn]] void throw_read_error(const std::string& path, const std::string& what) {
  throw_bad_data(path + ": " + what);
}

/// Returns the reason if a failed call is an error of the machine; empty if it is one of the file.
std::string machine_reason(int error_number) {
  switch (error_number) {
    case EMFILE:
      return open_files_limit_text();
    case ENFILE:
      return "all processes together have as many files open as the system allows";
    case ENOMEM:
      return memory_limit_text();
    case EIO:
      return "the storage does not give these bytes now: a bad sector, or a lost connection";
    case EAGAIN:
    case EBUSY:
    case ECONNABORTED:
    case ECONNREFUSED:
    case ECONNRESET:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENETDOWN:
    case ENETUNREACH:
    case ENOBUFS:
    case ENOLINK:
    case ENOTCONN:
    case EREMOTEIO:
    case ESHUTDOWN:
    case ESTALE:
    case ETIMEDOUT:
      return "the storage does not answer now";
    default:
      return {};
  }
}

FileDescriptor open_input(const std::string& path) {
  return FileDescriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
}

struct stat status_of(const std::string& path, const FileDescriptor& fd) {
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) throw_failed_read(path, "", errno);
  return status;
}

/// Number of files that InputFile keeps open, at most half of the process's limit.
std::atomic<std::uint64_t> kept_count{0};

/// Returns an owner that counts the open file; null if the limit is reached, and the file is then reopened
/// for each read.
std::shared_ptr<const FileDescriptor> kept_open(std::shared_ptr<const FileDescriptor> fd) {
  if (kept_count.fetch_add(1) < open_files_limit() / 2)
    return {fd.get(), [fd](const FileDescriptor*) mutable {
              fd.reset();
              --kept_count;
            }};
  --kept_count;
  return nullptr;
}

}  // namespace

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) ::close(fd_);
}

namespace {

/// A regular file of this machine.
class LocalFile final : public FileBytes {
 public:
  LocalFile(std::string path, FileDescriptor fd);
  LocalFile(std::string path, std::shared_ptr<const FileDescriptor> fd, std::uint64_t bytes)
      : FileBytes(std::move(path), bytes), fd_(std::move(fd)) {}
  /// Closes the file, which is opened again for each read, where too many are open.
  void close_beyond_limit() { fd_ = kept_open(fd_); }
  [[nodiscard]] FileDescriptor duplicate() const override;
  void read_at(std::uint64_t offset, MutableBytes out) const override;
  [[nodiscard]] bool has_bad_sector(std::uint64_t offset, std::size_t bytes) const override;
  void read_ahead(std::uint64_t offset, std::uint64_t bytes) const override;
  [[nodiscard]] bool reads_ahead() const override;

 private:
  [[nodiscard]] ssize_t peek(std::uint64_t offset) const;
  [[nodiscard]] std::shared_ptr<const FileDescriptor> open_again() const;

  std::shared_ptr<const FileDescriptor> fd_;  // none: opened for each read
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

LocalFile::LocalFile(std::string path, FileDescriptor fd)
    : FileBytes(std::move(path), 0), fd_(std::make_shared<const FileDescriptor>(std::move(fd))) {
  if (!fd_->is_open()) throw_failed_read(path_, "", errno);
  const struct stat status = status_of(path_, *fd_);
  if (!S_ISREG(status.st_mode)) throw_read_error(path_, "not a regular file");
  bytes_ = static_cast<std::uint64_t>(status.st_size);
  device_ = status.st_dev;
  inode_ = status.st_ino;
}

std::shared_ptr<const FileDescriptor> LocalFile::open_again() const {
  if (fd_) return fd_;
  auto fd = std::make_shared<const FileDescriptor>(open_input(path_));
  if (!fd->is_open()) throw_failed_read(path_, "", errno);
  const struct stat status = status_of(path_, *fd);
  if (status.st_dev != device_ || status.st_ino != inode_)
    throw_read_error(path_, "is another file than the one that was opened before");
  return fd;
}

FileDescriptor LocalFile::duplicate() const {
  const std::shared_ptr<const FileDescriptor> fd = open_again();
  FileDescriptor same(::fcntl(fd->get(), F_DUPFD_CLOEXEC, 0));
  if (!same.is_open()) throw_failed_read(path_, "", errno);
  return same;
}

void LocalFile::read_at(std::uint64_t offset, MutableBytes out) const {
  const std::shared_ptr<const FileDescriptor> again = fd_ ? nullptr : open_again();
  const int fd = fd_ ? fd_->get() : again->get();
  while (!out.empty()) {
    const ssize_t got = ::pread(fd, out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_failed_read(path_, "cannot read at byte " + std::to_string(offset) + ": ", errno);
    if (got == 0)
      throw_read_error(path_, "ends at byte " + std::to_string(offset) + ", expected " +
                                  std::to_string(out.size()) + " more bytes");
    offset += static_cast<std::uint64_t>(got);
    out = out.subspan(static_cast<std::size_t>(got));
  }
}

/// A bad sector fails while other bytes of the file can be read; lost storage fails for all of them.
bool LocalFile::has_bad_sector(std::uint64_t offset, std::size_t bytes) const {
  const std::shared_ptr<const FileDescriptor> fd = open_again();
  std::uint8_t byte = 0;
  const auto reads = [&](std::uint64_t at) {
    // Drops the page from the cache, so that the storage itself has to answer.
    ::posix_fadvise(fd->get(), static_cast<off_t>(at), 1, POSIX_FADV_DONTNEED);
    return ::pread(fd->get(), &byte, 1, static_cast<off_t>(at)) == 1;
  };
  const std::uint64_t end = offset + bytes;
  const bool reads_elsewhere = (offset >= kSectorBytes && reads(0)) ||
                               (bytes_ > end && bytes_ - end >= kSectorBytes && reads(bytes_ - 1));
  if (!reads_elsewhere) return false;
  for (std::uint64_t at = offset; at < end; at = (at / kSectorBytes + 1) * kSectorBytes)
    if (!reads(at)) return errno == EIO;
  return false;
}

/// Reads a byte if the system has it in memory; returns 1 then, and -1 where it does not tell.
ssize_t LocalFile::peek(std::uint64_t offset) const {
  std::uint8_t byte = 0;
  const iovec to{&byte, 1};
  return ::preadv2(fd_->get(), &to, 1, static_cast<off_t>(offset), RWF_NOWAIT);
}

/// Asking for what the system has costs as much as hashing it: nothing is asked where it has both ends.
void LocalFile::read_ahead(std::uint64_t offset, std::uint64_t bytes) const {
  if (!fd_ || bytes == 0 || (peek(offset) == 1 && peek(offset + bytes - 1) == 1)) return;
  ::posix_fadvise(fd_->get(), static_cast<off_t>(offset), static_cast<off_t>(bytes), POSIX_FADV_WILLNEED);
}

/// File systems that pass by the page cache tell of none; those in memory neither, which need none.
bool LocalFile::reads_ahead() const {
  struct statfs system {};
  return fd_ && (peek(0) >= 0 || errno != EOPNOTSUPP ||
                 (::fstatfs(fd_->get(), &system) == 0 && system.f_type == TMPFS_MAGIC));
}

}  // namespace

InputFile::InputFile(const std::string& path) {
  if (is_url(path)) {
    file_ = std::make_shared<const RemoteFile>(path);
    return;
  }
  auto file = std::make_shared<LocalFile>(path, open_input(path));
  file->close_beyond_limit();
  file_ = std::move(file);
}

InputFile::InputFile(std::string path, FileDescriptor fd)
    : file_(std::make_shared<const LocalFile>(std::move(path), std::move(fd))) {}

InputFile::InputFile(std::string path, std::shared_ptr<const FileDescriptor> fd, std::uint64_t bytes)
    : file_(std::make_shared<const LocalFile>(std::move(path), std::move(fd), bytes)) {}

InputFile InputFile::in_memory() const {
  if (remote() == nullptr) return *this;
  constexpr std::uint64_t kBlockBytes = 4 << 20;
  FileDescriptor fd(::memfd_create("chunkhit remote file", MFD_CLOEXEC));
  if (!fd.is_open()) throw_failed_read(path(), "", errno);
  ByteBuffer block;
  for (std::uint64_t at = 0; at < byte_count(); at += block.size()) {
    block.resize(std::min(kBlockBytes, byte_count() - at));
    read_at(at, block);
    for (Bytes left = block; !left.empty();) {
      const ssize_t written = ::write(fd.get(), left.data(), left.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0)
        throw_failed_read(path(), "cannot keep it in memory: ", written == 0 ? ENOMEM : errno);
      left = left.subspan(static_cast<std::size_t>(written));
    }
  }
  return {path(), std::move(fd)};
}

namespace {

/// Opens a file; nothing where there is none.
std::optional<InputFile> find_input(const std::string& path) {
  if (!is_url(path)) {
    FileDescriptor fd = open_input(path);
    if (!fd.is_open() && (errno == ENOENT || errno == ENOTDIR)) return std::nullopt;
    return InputFile(path, std::move(fd));
  }
  try {
    return InputFile(path);
  } catch (const Error& missing) {
    // S3 answers 403 for what is not there to those who may not list the bucket.
    if (missing.code() != ErrorCode::bad_data && missing.code() != ErrorCode::usage) throw;
    return std::nullopt;
  }
}

}  // namespace

bool file_exists(const std::string& path) {
  std::error_code error;
  return is_url(path) ? find_input(path).has_value() : std::filesystem::exists(path, error);
}

namespace {

ByteBuffer read_whole(const InputFile& file, std::uint64_t max_bytes) {
  if (file.byte_count() > max_bytes)
    throw_read_error(file.path(), "has " + std::to_string(file.byte_count()) + " bytes, expected at most " +
                                      std::to_string(max_bytes));
  ByteBuffer bytes(file.byte_count());
  file.read_at(0, bytes);
  return bytes;
}

}  // namespace

ByteBuffer read_file(const std::string& path, std::uint64_t max_bytes) {
  return read_whole(InputFile(path), max_bytes);
}

std::optional<ByteBuffer> find_file(const std::string& path, std::uint64_t max_bytes) {
  const std::optional<InputFile> file = find_input(path);
  return file ? std::optional(read_whole(*file, max_bytes)) : std::nullopt;
}

std::uint64_t hash_file(const std::string& path) {
  const InputFile file(path);
  Xxh3Stream hash;
  ByteBuffer block(kHashBlockBytes);
  for (std::uint64_t offset = 0; offset < file.byte_count(); offset += kHashBlockBytes) {
    const auto size = std::min<std::uint64_t>(kHashBlockBytes, file.byte_count() - offset);
    const MutableBytes part(block.data(), size);
    file.read_at(offset, part);
    hash.update(part);
  }
  return hash.value();
}

std::string common_folder(std::span<const std::string> paths) {
  std::filesystem::path common = paths.front();
  const auto holds = [&](const std::filesystem::path& path) {
    return std::mismatch(common.begin(), common.end(), path.begin(), path.end()).first == common.end();
  };
  while (common.has_relative_path() && !std::ranges::all_of(paths, holds)) common = common.parent_path();
  return common.string();
}

void throw_failed_read(const std::string& path, const std::string& what, int error_number) {
  const std::string reason = machine_reason(error_number);
  const std::string text = what + error_text(error_number);
  if (reason.empty()) throw_read_error(path, text);
  throw Error(ErrorCode::try_again, path + ": " + text + " (" + reason + ")");
}

std::string error_text(int error_number) { return std::generic_category().message(error_number); }

}  // namespace chunkhit
