// Files under a root that nothing leads out of.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/file.h"

namespace chunkhit {

/// Opens files below one folder; a path that leads out of it (absolute, `..`, a symbolic link) is refused.
class RootFolder {
 public:
  /// A file that was opened, or why it was not ("no such file", "leads out of the root folder", "is empty",
  /// "not a regular file"): then `fault` is not empty and the rest means nothing.
  struct File {
    std::string fault;
    std::uint64_t bytes = 0;
    FileDescriptor fd;
    /// Reads all of it into `buffer` (resized); returns an empty text, or what went wrong ("changed while it
    /// was read").
    [[nodiscard]] std::string read(ByteBuffer& buffer) const;
  };

  /// Opens the folder; throws bad_data when it is none.
  explicit RootFolder(const std::string& path);
  /// Opens a regular file of at least one byte. Never waits on a FIFO or device. Thread-safe.
  [[nodiscard]] File open(std::string_view relative_path) const;

 private:
  std::string path_;
  std::string real_path_;
  FileDescriptor fd_;
};

}  // namespace chunkhit
