// The HDF5 library: handles, errors, and files that are read.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/file.h"
#include "chunkhit/error.h"

namespace chunkhit {

/// Owns an HDF5 identifier; closes it in silence, and while no other thread uses the library.
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
  herr_t close();

 private:
  hid_t id_ = -1;
  herr_t (*close_)(hid_t) = nullptr;
};

/// Takes the HDF5 library for this thread: it is not made for several. Keeps it from printing errors as long
/// as it lives; what the process had set before comes back.
class Hdf5Session {
 public:
  Hdf5Session();
  Hdf5Session(const Hdf5Session&) = delete;
  Hdf5Session& operator=(const Hdf5Session&) = delete;
  ~Hdf5Session();

 private:
  std::unique_lock<std::recursive_mutex> lock_;
  H5E_auto2_t print_ = nullptr;
  void* print_data_ = nullptr;
};

/// The library was denied memory under a limit of this process.
struct Hdf5MemoryError : Error {
  using Error::Error;
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
  /// Throws "PATH: WHAT", or the error that `note_machine_error` recorded on this thread.
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

/// Begins a driver of HDF5's virtual file layer: version and number, which HDF5 1.13 and later want, and what
/// our drivers share.
[[nodiscard]] H5FD_class_t begin_driver(const char* name, std::size_t settings_bytes);

/// Opens the file at `path` for reading, without locks; closing the handle closes all that was opened in it.
[[nodiscard]] Hdf5Handle open_hdf5_file(const Hdf5Check& check, const std::string& path);

/// Location of a chunk's stored bytes. Bit i of the mask: filter i was skipped.
struct Hdf5ChunkLocation {
  std::uint64_t offset = 0;
  std::uint64_t stored_bytes = 0;
  std::uint32_t filter_mask = 0;
};

struct ReadWatch;

/// An HDF5 file open for reading. Closing it closes all that was opened in it.
class Hdf5Source {
 public:
  explicit Hdf5Source(InputFile input);
  Hdf5Source(const Hdf5Source&) = delete;
  Hdf5Source& operator=(const Hdf5Source&) = delete;
  ~Hdf5Source();
  [[nodiscard]] hid_t file() const { return file_.get(); }
  [[nodiscard]] const Hdf5Check& check() const { return check_; }
  [[nodiscard]] std::uint64_t byte_count() const { return input_.byte_count(); }
  /// Where the HDF5 file ends, as its superblock says.
  [[nodiscard]] std::uint64_t end_address() const;
  /// Finds the chunk that begins at `first`, in logarithmic time; nothing where it was never written or the
  /// index is damaged, two cases that look alike to the library: compare with H5Dget_num_chunks.
  /// H5Dget_chunk_info walks over all chunks before it, so that n chunks would take it n² / 2 steps.
  [[nodiscard]] std::optional<Hdf5ChunkLocation> find_chunk(hid_t dataset, std::span<const hsize_t> first);

 private:
  Hdf5Check check_;
  InputFile input_;
  std::unique_ptr<ReadWatch> watch_;
  ByteBuffer untouched_;  // HDF5 wants room for a chunk that is never read
  Hdf5Handle driver_;
  Hdf5Handle file_;
};

}  // namespace chunkhit
