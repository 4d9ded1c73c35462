#include "pack/images/archive_spool.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/aside_name.h"
#include "chunkhit/error.h"
#include "pack/disk_space.h"
#include "pack/pack_folder.h"

namespace chunkhit {

void ArchiveSpool::begin(const std::string& path, std::uint64_t bytes, bool is_least) {
  if (!file_) {
    remove_left_overs();
    file_ = std::make_unique<SpillFile>(folder_);
    fd_ = std::make_shared<const FileDescriptor>(::open(file_->open_path().c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd_->is_open()) throw_failed_read(folder_, "cannot open the copy of " + path + ": ", errno);
  }
  const std::string error = space_error({bytes, is_least}, free_bytes(folder_));
  if (!error.empty())
    throw Error(ErrorCode::cannot_write, folder_ + ": the unpacked copy of " + path + " " + error);
}

std::uint64_t ArchiveSpool::append(Bytes bytes) {
  const std::uint64_t at = file_->append(bytes);
  end_ = at + bytes.size();
  return at;
}

void ArchiveSpool::add_container(const std::string& path, const FileStamp& source) {
  list_.containers.push_back({InputFile(path, fd_, end_), {}, source});
}

void ArchiveSpool::finish() {
  for (SampleContainer& container : list_.containers)
    if (container.listed == FileStamp{}) container.listed = stamp_of(container.file);
}

/// Where the file system has no files without a name, a killed run may leave one.
void ArchiveSpool::remove_left_overs() const {
  for (const std::string& name : folder_entries(folder_))
    if (name_written_aside(name) == kSpillName && find_aside_writer(folder_, name) == AsideWriter::is_gone)
      ::unlink((folder_ + "/" + name).c_str());
}

}  // namespace chunkhit
