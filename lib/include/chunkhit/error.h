// The library's exception and its error codes, and the marks of what the library exports.
#pragma once

// All headers include this one first. The file that does not exist ends the compilation: else pages of errors
// about concepts and spans would follow.
#if defined(__cplusplus) && __cplusplus <= 201703L
#error "chunkhit needs C++20: compile with -std=c++20"
#include <chunkhit/needs-c++20>
#endif

#include <stdexcept>
#include <string>

// Marks of what the shared libraries export, and of what they keep to themselves.
#define CHUNKHIT_API __attribute__((visibility("default")))
#define CHUNKHIT_HIDDEN __attribute__((visibility("hidden")))

namespace chunkhit {

/// Reason of a failure; the values are the exit codes of the commands.
enum class CHUNKHIT_API ErrorCode {
  too_many_rejects = 1,  ///< stopped by --max-errors or --on-error fail
  usage = 2,             ///< an option or argument that makes no sense
  bad_data = 65,         ///< input that cannot be used, or a pack that is not what it says
  cannot_write = 73,     ///< output that cannot be written: disk full, folder not empty, another spec
  try_again = 75,        ///< stopped by a transient condition; rerun the same command to resume
};

/// Carries a message that says what, where, found and expected, and the code of what went wrong.
class CHUNKHIT_API Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  [[nodiscard]] ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace chunkhit
