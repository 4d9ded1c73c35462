#include "store/hdf5_handle.h"

#include <optional>
#include <string_view>

#include "base/bytes.h"
#include "base/limits.h"

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

/// Notes whether a call failed because the system denied memory.
herr_t look_for_memory(unsigned, const H5E_error2_t* error, void* denied) {
  const bool is_memory = error->maj_num == H5E_RESOURCE || error->min_num == H5E_NOSPACE;
  if (is_memory) *static_cast<bool*>(denied) = true;
  return is_memory ? 1 : 0;
}

thread_local std::optional<Error> machine_error;

}  // namespace

void note_machine_error(const Error& error) { machine_error = error; }

void forget_machine_error() { machine_error.reset(); }

QuietHdf5::QuietHdf5() {
  // HDF5 1.10 crashes when it runs out of memory while it starts, which takes some 3 MiB.
  static const std::size_t room = ByteBuffer(8 << 20).size();
  static_cast<void>(room);
  H5Eget_auto2(H5E_DEFAULT, &print_, &print_data_);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

QuietHdf5::~QuietHdf5() { H5Eset_auto2(H5E_DEFAULT, print_, print_data_); }

void Hdf5Check::refuse(const std::string& what) const {
  if (machine_error) throw Error(*machine_error);
  throw Error(code_, path_ + ": " + what);
}

void Hdf5Check::fail(const char* what) const {
  bool denied = false;
  // Without a limit the system denies only what no machine has, and what only a damaged file asks for.
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, look_for_memory, &denied);
  if (denied && has_memory_limit()) throw Error(ErrorCode::try_again, path_ + ": " + memory_limit_text());
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
