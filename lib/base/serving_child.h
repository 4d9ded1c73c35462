// A forked child that reads for this process, so that a damaged file can crash or hang only the child.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/child_line.h"
#include "base/file.h"

namespace chunkhit {

/// How a child is made.
struct ChildOptions {
  pid_t (*fork)() = nullptr;  ///< null: the system's; a library with locks needs its own moment
  /// CPU time that the child may take before its first answer, and from one answer or `allow_more_time` to
  /// the next; 0: no limit. Time on the wall counts a thirtieth; waiting for the parent does not count.
  std::uint32_t max_seconds = 0;
  /// Memory that the child may take beside what this process has; 0: no limit.
  std::uint64_t max_memory_bytes = 0;
};

/// A child process. It has one thread at first, a copy of this process' memory, and none of its other
/// threads: what it serves must take no lock of ours that one of those may hold. The caller may have threads,
/// and other children: a copy of the line in one of them holds nobody up.
class ServingChild {
 public:
  /// Forks; the child calls `serve` and ends. Throws try_again when there can be no child.
  explicit ServingChild(const std::function<void(ChildLine&)>& serve, ChildOptions options = {});
  ServingChild(const ServingChild&) = delete;
  ServingChild& operator=(const ServingChild&) = delete;
  /// Kills the child, whatever it is at.
  ~ServingChild();
  void ask(Bytes question);
  /// Waits for the next answer. Throws what the child threw, as Error with the same code or std::bad_alloc;
  /// bad_data that begins with `name` when the child crashed, or ran out of time; and try_again when
  /// somebody killed it, or it crashed under a limit of memory.
  [[nodiscard]] ByteBuffer receive(const std::string& name);

 private:
  void start(const std::function<void(ChildLine&)>& serve, pid_t (*fork)());
  [[nodiscard]] bool is_ready(int max_milliseconds);
  [[nodiscard]] bool has_ended() const;
  [[nodiscard]] bool wait_for(short events) const;
  [[nodiscard]] bool send_all(const void* from, std::size_t bytes) const;
  [[nodiscard]] bool receive_all(void* to, std::size_t bytes) const;
  [[nodiscard]] int wait_for_end();
  void kill();
  [[noreturn]] void throw_end(const std::string& name);
  [[noreturn]] void throw_nonsense(const std::string& name);
  FileDescriptor end_;
  FileDescriptor process_;  ///< readable when the child has ended; none where the system has no such thing
  pid_t child_ = -1;
  std::optional<int> status_;  ///< of the child that has ended
  std::uint32_t max_seconds_;
  std::uint64_t max_memory_bytes_;
};

}  // namespace chunkhit
