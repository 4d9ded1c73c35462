// Memory that the processes of one user on one machine share.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "base/file.h"
#include "cache/chunk_buffers.h"
#include "chunkhit/error.h"

namespace chunkhit {

/// Memory cannot be shared; says why.
class NotShared final : public Error {
 public:
  explicit NotShared(const std::string& what)
      : Error(ErrorCode::try_again, "memory is not shared with other processes: " + what) {}
};

/// A memfd that no process can shrink. Each process that has it open writes its id and descriptor into a
/// file, under a lock; others open it from there, by /proc/PID/fd. So no file system limits it, and nothing
/// is left of it when the last process has ended, however that ended.
class SharedMemory {
 public:
  static constexpr std::size_t kPageBytes = 4096;
  /// Opens the memory of `id`, or makes it: `bytes` zeros. Every caller with an `id` must give the same
  /// number of bytes. Throws NotShared and std::bad_alloc.
  SharedMemory(std::uint64_t id, std::size_t bytes);
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory();
  [[nodiscard]] std::uint8_t* data() const {
    return memory_.data() + kPageBytes;
  }  // the first page is the id's
  /// Gets the pages of some of the memory at once: where one cannot be had, writing to it would end the
  /// process. Throws std::bad_alloc.
  void populate(const std::uint8_t* begin, std::size_t bytes) const;
  /// Lets other processes open the memory from this one; to be called where it may be a fork of the one that
  /// opened it.
  void announce();

  /// Memory that is taken already for `id`, by all processes.
  [[nodiscard]] static std::uint64_t taken_bytes(std::uint64_t id);
  /// Says why memory cannot be shared; empty where it can.
  [[nodiscard]] static std::string obstacle();

 private:
  std::string name_;  // of the file, in the folder of this user
  FileDescriptor fd_;
  MemoryMap memory_;
  std::atomic<pid_t> announced_{0};  // the process that is listed
};

}  // namespace chunkhit
