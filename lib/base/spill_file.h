// A file for what does not fit into memory; it vanishes with the process.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/file.h"

namespace chunkhit {

/// What the file is written for, where its file system needs a name for it (base/aside_name.h) …
inline constexpr std::string_view kSpillName = "spill";
/// … and how version 0.1 named it.
inline constexpr std::string_view kOldSpillBegin = ".chunkhit-spill-";

/// Keeps bytes on disk while this object lives. Several threads may append and read.
class SpillFile {
 public:
  /// Creates the file in a folder that exists; throws cannot_write.
  explicit SpillFile(const std::string& folder);
  /// Appends bytes and tells where they begin; throws cannot_write.
  std::uint64_t append(Bytes bytes) { return append(std::span(&bytes, 1)); }
  /// The same for pieces that lie one behind the other.
  std::uint64_t append(std::span<const Bytes> pieces);
  /// Reads what was appended; throws cannot_write when the disk does not give it back.
  void read_at(std::uint64_t offset, MutableBytes out) const { read_at(offset, std::span(&out, 1)); }
  /// The same for pieces that lie one behind the other, with one system call.
  void read_at(std::uint64_t offset, std::span<const MutableBytes> pieces) const;
  /// A path by which this process and children that it forks open the file.
  [[nodiscard]] std::string open_path() const {
    return std::string("/proc/self/fd/").append(std::to_string(fd_.get()));
  }

 private:
  void write_at(std::uint64_t offset, Bytes bytes) const;

  std::string path_;  ///< path for messages; the file may have no name
  FileDescriptor fd_;
  std::atomic<std::uint64_t> bytes_{0};
};

}  // namespace chunkhit
