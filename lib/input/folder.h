// Files under a root that nothing leads out of.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>

#include "base/bytes.h"
#include "base/file.h"
#include "chunkhit/error.h"

namespace chunkhit {

/// Size and time by which a changed file is detected; all 0 where it cannot be opened.
struct FileStamp {
  std::uint64_t bytes = 0;
  std::int64_t mtime_ns = 0;
  bool operator==(const FileStamp&) const = default;
};

/// The machine could not read an input (EIO, ESTALE, ENOTCONN, EMFILE, ENOMEM, …): that says nothing of the
/// input, and may pass. The code is try_again.
class MachineError : public Error {
 public:
  explicit MachineError(const std::string& message) : Error(ErrorCode::try_again, message) {}
};

/// Calls `read` up to three times, within about two seconds, while it throws try_again.
template <class Read>
auto with_retries(Read read) -> decltype(read()) {
  for (const auto pause : {std::chrono::milliseconds(400), std::chrono::milliseconds(1600)}) {
    try {
      return read();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::try_again) throw;
      std::this_thread::sleep_for(pause);
    }
  }
  return read();
}

/// Opens files below one folder; a path that leads out of it (`..`, absolute elsewhere, a symbolic link) is
/// an error. A link may be absolute where it leads to a file below the folder.
class RootFolder {
 public:
  /// A file that was opened, or why it was not ("no such file", "leads out of the root folder", "is empty",
  /// "not a regular file"): then `error` is not empty and the rest means nothing.
  struct File {
    std::string error;
    std::uint64_t bytes = 0;
    FileStamp stamp;
    FileDescriptor fd;
    /// Reads all of it into `buffer` (resized); returns an empty text, or what went wrong ("changed while it
    /// was read"). Throws MachineError.
    [[nodiscard]] std::string read(ByteBuffer& buffer) const;
  };

  /// Opens the folder; throws bad_data when it is none, try_again when the machine cannot read it. With
  /// `follow_symlinks` links may lead out of it.
  explicit RootFolder(const std::string& path, bool follow_symlinks = false);
  /// Opens a regular file of at least one byte. A path is relative, or absolute and below the folder. Never
  /// waits on a FIFO or device. Throws MachineError. Thread-safe.
  [[nodiscard]] File open(std::string_view path) const;
  /// The stamp of a file without opening it; throws MachineError. Thread-safe.
  [[nodiscard]] FileStamp stamp(std::string_view path) const;
  /// Throws MachineError where a file may be missing because the file system that holds it is: this folder is
  /// not the one that was opened, or the file's own folder below it is as empty as a bare mount point.
  void check_mounted(std::string_view missing_file) const;

 private:
  [[nodiscard]] std::string below_root(std::string_view path) const;

  std::string path_;
  std::string real_path_;
  bool follow_symlinks_;
  FileDescriptor fd_;
};

}  // namespace chunkhit
