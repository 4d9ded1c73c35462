// Throw an Error of a code that needs no more words.
#pragma once

#include <string>

#include "chunkhit/error.h"

namespace chunkhit {

[[noreturn]] inline void throw_usage(const std::string& message) { throw Error(ErrorCode::usage, message); }
[[noreturn]] inline void throw_bad_data(const std::string& message) {
  throw Error(ErrorCode::bad_data, message);
}

}  // namespace chunkhit
