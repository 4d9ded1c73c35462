// The messages between a process and its forked child, and the child's end of their line.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/file.h"

namespace chunkhit {

enum class ChildMessage : std::uint64_t { answer, error, no_memory, ready };

/// Stands before every message.
struct ChildHeading {
  ChildMessage kind = ChildMessage::answer;
  std::uint64_t code = 0;  ///< of an error
  std::uint64_t bytes = 0;
};

/// Sends a message with as many bytes as there are; false when the other end is gone.
bool send_message(int end, ChildHeading heading, Bytes bytes);

/// The child's end of its line to the parent. Its limited time stands still while it waits for the parent.
class ChildLine {
 public:
  explicit ChildLine(FileDescriptor end) : end_(std::move(end)) {}
  /// Waits for the parent's next question; false when there will be none.
  [[nodiscard]] bool receive(ByteBuffer& question);
  void answer(Bytes answer);

 private:
  FileDescriptor end_;
};

}  // namespace chunkhit
