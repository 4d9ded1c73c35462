#include "pack/spill_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>

#include "chunkhit/error.h"

namespace chunkhit {

SpillFile::SpillFile(const std::string& folder) : path_(folder + "/.chunkhit-spill-XXXXXX") {
  fd_ = FileDescriptor(::mkostemp(path_.data(), O_CLOEXEC));
  if (!fd_.is_open()) throw_write_error(path_, "cannot create", errno);
  ::unlink(path_.c_str());
}

std::uint64_t SpillFile::append(Bytes bytes) {
  const std::uint64_t first = bytes_.fetch_add(bytes.size());
  for (std::uint64_t offset = first; !bytes.empty();) {
    const ssize_t written = ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) throw_write_error(path_, "cannot write", written == 0 ? ENOSPC : errno);
    offset += static_cast<std::uint64_t>(written);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return first;
}

void SpillFile::read_at(std::uint64_t offset, MutableBytes out) const {
  while (!out.empty()) {
    const ssize_t got = ::pread(fd_.get(), out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) throw_write_error(path_, "cannot read back", got == 0 ? EIO : errno);
    offset += static_cast<std::uint64_t>(got);
    out = out.subspan(static_cast<std::size_t>(got));
  }
}

}  // namespace chunkhit
