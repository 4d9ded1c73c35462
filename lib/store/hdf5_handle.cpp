#include "store/hdf5_handle.h"

#include "base/bytes.h"

namespace chunkhit {
namespace {

/// Keeps the description of the deepest failure, and the system's own words where a description quotes them.
herr_t keep_reason(unsigned, const H5E_error2_t* error, void* reason) {
  constexpr std::string_view kQuoted = "error message = '";
  auto& text = *static_cast<std::string*>(reason);
  const std::string description = error->desc == nullptr ? "" : error->desc;
  const std::size_t quoted = description.find(kQuoted);
  if (quoted != std::string::npos) {
    const std::size_t begin = quoted + kQuoted.size();
    text = description.substr(begin, description.find('\'', begin) - begin);
    return 1;
  }
  if (text.empty()) text = description;
  return 0;
}

}  // namespace

QuietHdf5::QuietHdf5() {
  // HDF5 1.10 crashes when it runs out of memory while it starts, which takes some 3 MiB.
  static const std::size_t room = ByteBuffer(8 << 20).size();
  static_cast<void>(room);
  H5Eget_auto2(H5E_DEFAULT, &print_, &print_data_);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

QuietHdf5::~QuietHdf5() { H5Eset_auto2(H5E_DEFAULT, print_, print_data_); }

void Hdf5Check::fail(const char* what) const {
  std::string reason;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_reason, &reason);
  refuse("cannot " + std::string(what) + (reason.empty() ? "" : ": " + reason));
}

Hdf5Handle open_hdf5_file(const Hdf5Check& check, const std::string& path) {
  const Hdf5Handle access(check(H5Pcreate(H5P_FILE_ACCESS), "create a property list"), H5Pclose);
  check(H5Pset_fclose_degree(access.get(), H5F_CLOSE_STRONG), "set the way of closing");
  check(H5Pset_file_locking(access.get(), false, true), "leave out file locks");
  return {check(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get()), "open"), H5Fclose};
}

}  // namespace chunkhit
