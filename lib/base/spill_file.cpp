#include "base/spill_file.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <vector>

#include "base/aside_name.h"

namespace chunkhit {

SpillFile::SpillFile(const std::string& folder)
    : path_(make_aside_path(folder + "/" + std::string(kSpillName))),
      fd_(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600)) {
  if (fd_.is_open()) return;
  // Some file systems have no files without a name.
  fd_ = FileDescriptor(::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd_.is_open()) throw_write_error(path_, "cannot create", errno);
  ::unlink(path_.c_str());
}

/// Reserves the range atomically, so that several threads can append at once without a lock.
std::uint64_t SpillFile::append(std::span<const Bytes> pieces) {
  std::uint64_t all = 0;
  for (const Bytes piece : pieces) all += piece.size();
  const std::uint64_t first = bytes_.fetch_add(all);
  std::uint64_t offset = first;
  for (const Bytes piece : pieces) {
    write_at(offset, piece);
    offset += piece.size();
  }
  return first;
}

void SpillFile::write_at(std::uint64_t offset, Bytes bytes) const {
  if (const int error = write_all_at(fd_.get(), offset, bytes); error != 0)
    throw_write_error(path_, "cannot write", error);
}

/// Reads into all pieces with one preadv where possible. A short read leaves the first unfinished piece
/// shortened and continues from there.
void SpillFile::read_at(std::uint64_t offset, std::span<const MutableBytes> pieces) const {
  std::vector<iovec> left;
  for (const MutableBytes piece : pieces)
    if (!piece.empty()) left.push_back({piece.data(), piece.size()});
  for (std::size_t next = 0; next < left.size();) {
    const auto count = static_cast<int>(std::min<std::size_t>(left.size() - next, IOV_MAX));
    const ssize_t got = ::preadv(fd_.get(), &left[next], count, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) throw_write_error(path_, "cannot read back", got == 0 ? EIO : errno);
    offset += static_cast<std::uint64_t>(got);
    auto taken = static_cast<std::size_t>(got);
    for (; next < left.size() && taken >= left[next].iov_len; ++next) taken -= left[next].iov_len;
    if (next == left.size()) break;
    left[next].iov_base = static_cast<std::uint8_t*>(left[next].iov_base) + taken;
    left[next].iov_len -= taken;
  }
}

}  // namespace chunkhit
