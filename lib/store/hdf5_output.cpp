#include "store/hdf5_output.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>

namespace chunkhit {

void leave_files_alone_at_exit() {
  static const herr_t left_alone = H5dont_atexit();
  static_cast<void>(left_alone);
}

Hdf5Handle create_hdf5_file(const Hdf5Check& check, const std::string& path,
                            std::uint64_t metadata_block_bytes) {
  const Hdf5Handle access(check(H5Pcreate(H5P_FILE_ACCESS), "create a property list"), H5Pclose);
  const Hdf5Handle creation(check(H5Pcreate(H5P_FILE_CREATE), "create a property list"), H5Pclose);
  check(H5Pset_libver_bounds(access.get(), H5F_LIBVER_EARLIEST, H5F_LIBVER_V18), "set the version bounds");
  check(H5Pset_meta_block_size(access.get(), metadata_block_bytes), "set the metadata block");
  // Small chunks lie where the file ended, as large ones do, so that their addresses are known.
  check(H5Pset_small_data_block_size(access.get(), 0), "set the data block");
  check(H5Pset_fclose_degree(access.get(), H5F_CLOSE_STRONG), "set the way of closing");
  check(H5Pset_file_locking(access.get(), false, true), "leave out file locks");
  check(H5Pset_obj_track_times(creation.get(), false), "leave out times");
  return {check(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation.get(), access.get()), "create"), H5Fclose};
}

std::uint64_t end_of_hdf5_file(const Hdf5Check& check, hid_t file) {
  hsize_t bytes = 0;
  check(H5Fget_filesize(file, &bytes), "ask for the file's size");
  return bytes;
}

void reserve(const PendingFile& file, std::uint64_t end, std::uint64_t bytes) {
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      end + bytes > limit.rlim_cur)
    throw_write_error(file.path(), "cannot write", EFBIG);
  int status = 0;
  do status = ::fallocate(file.fd(), FALLOC_FL_KEEP_SIZE, static_cast<off_t>(end), static_cast<off_t>(bytes));
  while (status != 0 && errno == EINTR);
  if (status != 0 && (errno == ENOSPC || errno == EDQUOT || errno == EFBIG || errno == EIO))
    throw_write_error(file.path(), "cannot write", errno);
}

void give_back_reserved(const PendingFile& file, std::uint64_t file_bytes) {
  if (::ftruncate(file.fd(), static_cast<off_t>(file_bytes)) != 0)
    throw_write_error(file.path(), "cannot set the size", errno);
}

}  // namespace chunkhit
