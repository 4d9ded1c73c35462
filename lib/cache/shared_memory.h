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

namespace chunkhit {

/// A memfd that no process can shrink. Each process that has it open writes its id and descriptor into a
/// file, under a lock; others open it from there, by /proc/PID/fd. So no file system limits it, and nothing
/// is left of it when the last process has ended, however that ended.
class SharedMemory {
 public:
  /// Opens the memory of `id`, or makes it: `bytes` zeros. Every caller with an `id` must give the same
  /// number of bytes. Throws try_again with a reason where memory cannot be shared, and std::bad_alloc.
  SharedMemory(std::uint64_t id, std::size_t bytes);
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory();
  [[nodiscard]] std::uint8_t* data() const { return memory_.data() + kIdBytes; }
  /// Lets other processes open the memory from this one; to be called where it may be a fork of the one that
  /// opened it.
  void announce();

  /// Memory that is taken already for `id`, by all processes.
  [[nodiscard]] static std::uint64_t taken_bytes(std::uint64_t id);
  /// Says why memory cannot be shared; empty where it can.
  [[nodiscard]] static std::string obstacle();

 private:
  static constexpr std::size_t kIdBytes = 4096;  // before the data, which begins with a page

  std::string name_;  // of the file, in the folder of this user
  FileDescriptor fd_;
  MemoryMap memory_;
  std::atomic<pid_t> announced_{0};  // the process that is listed
};

}  // namespace chunkhit
