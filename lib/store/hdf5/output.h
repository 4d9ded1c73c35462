// An HDF5 file that is being written aside. The HDF5 library says where bytes lie; they are written by the
// file's own descriptor, those of chunks by the caller and without holding the library, so that parts are
// written in parallel.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/bytes.h"
#include "base/file.h"
#include "store/hdf5/handle.h"

namespace chunkhit {

struct Hdf5OutputState;

/// One that is not finished is discarded. Calls of the library between construction and `close` may report
/// success where a write failed: the library hides some errors by itself, and cannot close a file after
/// others. `add_chunk` and `close` throw the first of them.
class Hdf5Output {
 public:
  /// Creates a file that HDF5 1.8 reads and that has equal bytes for equal contents, with its metadata in
  /// blocks of `metadata_block_bytes`; throws cannot_write.
  Hdf5Output(const std::string& path, std::uint64_t metadata_block_bytes);
  Hdf5Output(const Hdf5Output&) = delete;
  Hdf5Output& operator=(const Hdf5Output&) = delete;
  ~Hdf5Output();
  [[nodiscard]] hid_t file() const { return file_.get(); }
  [[nodiscard]] const Hdf5Check& check() const { return check_; }
  [[nodiscard]] PendingFile& pending();
  /// Adds the chunk that begins at `first` to a dataset; returns the offset at which the caller has to write
  /// `stored`: the library does not. Throws cannot_write.
  [[nodiscard]] std::uint64_t add_chunk(hid_t dataset, std::span<const hsize_t> first,
                                        std::uint32_t filter_mask, Bytes stored);
  /// Ends the HDF5 file; all that was opened in it is closed before. Throws cannot_write.
  void close();

 private:
  void rethrow() const;

  Hdf5Check check_;
  std::unique_ptr<Hdf5OutputState> state_;
  Hdf5Handle driver_;
  Hdf5Handle file_;
};

/// Keeps the library from writing a file once more when the process ends, after that could not be done
/// before; to be called before anything else of the library is.
void leave_files_alone_at_exit();

}  // namespace chunkhit
