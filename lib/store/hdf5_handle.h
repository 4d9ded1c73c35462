// Calls of the HDF5 library: handles with an owner, failures as Error.
#pragma once

#include <hdf5.h>

#include <string>
#include <utility>

#include "chunkhit/error.h"

namespace chunkhit {

/// Owns an HDF5 identifier; closes it in silence.
class Hdf5Handle {
 public:
  Hdf5Handle() = default;
  Hdf5Handle(hid_t id, herr_t (*closer)(hid_t)) : id_(id), close_(closer) {}
  Hdf5Handle(Hdf5Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Hdf5Handle& operator=(Hdf5Handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  ~Hdf5Handle() { static_cast<void>(close()); }
  [[nodiscard]] hid_t get() const { return id_; }
  /// Closes now; returns HDF5's status.
  herr_t close() { return id_ < 0 ? 0 : close_(std::exchange(id_, -1)); }

 private:
  hid_t id_ = -1;
  herr_t (*close_)(hid_t) = nullptr;
};

/// Keeps HDF5 from printing errors on this thread for as long as it lives; what the process had set before
/// comes back.
class QuietHdf5 {
 public:
  QuietHdf5();
  QuietHdf5(const QuietHdf5&) = delete;
  QuietHdf5& operator=(const QuietHdf5&) = delete;
  ~QuietHdf5();

 private:
  H5E_auto2_t print_ = nullptr;
  void* print_data_ = nullptr;
};

/// Turns a negative status into an Error: "PATH: cannot WHAT: REASON", with the reason of the system where
/// there is one.
class Hdf5Check {
 public:
  Hdf5Check(ErrorCode code, std::string path) : code_(code), path_(std::move(path)) {}
  template <class Status>
  Status operator()(Status status, const char* what) const {
    if (status < 0) fail(what);
    return status;
  }
  /// Throws "PATH: WHAT", or what `note_machine_error` was told on this thread.
  [[noreturn]] void refuse(const std::string& what) const;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  [[noreturn]] void fail(const char* what) const;
  ErrorCode code_;
  std::string path_;
};

/// Keeps an error that says nothing of the file: HDF5 reports it in words of its own, or not at all. Until
/// `forget_machine_error`, Hdf5Check throws it instead of what it was going to say of the file.
void note_machine_error(const Error& error);
void forget_machine_error();

/// Opens the file at `path` for reading, without locks; closing the handle closes all that was opened in it.
[[nodiscard]] Hdf5Handle open_hdf5_file(const Hdf5Check& check, const std::string& path);

}  // namespace chunkhit
