// A forked child that reads for this process, so that a damaged file can crash or hang only the child.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>

#include "base/bytes.h"
#include "base/file.h"

namespace chunkhit {

/// The child's end of its line to the parent.
class ChildLine {
 public:
  explicit ChildLine(FileDescriptor end) : end_(std::move(end)) {}
  /// Waits for the parent's next question; false when there will be none.
  [[nodiscard]] bool receive(ByteBuffer& question);
  void answer(Bytes answer);

 private:
  FileDescriptor end_;
};

/// How a child is made.
struct ChildOptions {
  pid_t (*fork)() = nullptr;  ///< null: the system's; a library with locks needs its own moment
  /// CPU time that the child may take before its first answer, and from one answer or `allow_more_time` to
  /// the next; 0: no limit. Time on the wall counts a thirtieth.
  std::uint32_t most_seconds = 0;
};

/// A child process. It has one thread, a copy of this process' memory, and none of its other threads: what it
/// serves must neither start threads nor take locks of ours. The caller may have threads.
class ServingChild {
 public:
  /// Forks; the child calls `serve` and ends. Throws try_again when there can be no child.
  explicit ServingChild(const std::function<void(ChildLine&)>& serve, ChildOptions options = {});
  ServingChild(const ServingChild&) = delete;
  ServingChild& operator=(const ServingChild&) = delete;
  /// Ends the child, which may finish the question that it is at.
  ~ServingChild();
  void ask(Bytes question);
  /// Waits for the next answer. Throws what the child threw, as Error with the same code or std::bad_alloc;
  /// and bad_data that begins with `name` when the child crashed, or ran out of time.
  [[nodiscard]] ByteBuffer receive(const std::string& name);

 private:
  void start(const std::function<void(ChildLine&)>& serve, pid_t (*fork)());
  [[nodiscard]] bool is_ready(int most_milliseconds);
  int wait_for_end();
  [[noreturn]] void throw_end(const std::string& name);
  FileDescriptor end_;
  pid_t child_ = -1;
  std::uint32_t most_seconds_;
};

/// In a child with limited time: it begins anew. Elsewhere nothing.
void allow_more_time();

}  // namespace chunkhit
