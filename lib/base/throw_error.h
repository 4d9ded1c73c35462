// Throws Errors: usage, bad_data, cannot_write, and usage of an object in a forked process.
#pragma once

#include <unistd.h>

#include <string>

#include "chunkhit/error.h"

namespace chunkhit {

[[noreturn]] inline void throw_usage(const std::string& message) { throw Error(ErrorCode::usage, message); }
[[noreturn]] inline void throw_bad_data(const std::string& message) {
  throw Error(ErrorCode::bad_data, message);
}
[[noreturn]] inline void throw_cannot_write(const std::string& message) {
  throw Error(ErrorCode::cannot_write, message);
}

/// Throws usage in a forked child of `process`, where `what` was made: its threads run in the parent alone.
inline void require_own_process(pid_t process, const std::string& what) {
  if (::getpid() != process)
    throw_usage("this " + what + " was made before the process was forked; make one in each child");
}

}  // namespace chunkhit
