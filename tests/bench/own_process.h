// Measures in a process of its own: with untouched memory, and a peak that belongs to one run.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <stdexcept>
#include <type_traits>

namespace chunkhit {

/// Gives what `work` returns in a forked child. Throws std::runtime_error when it fails there, having written
/// why to stderr. To be called before this process has threads.
template <class Work>
auto in_own_process(Work work) {
  using Result = decltype(work());
  static_assert(std::is_trivially_copyable_v<Result>);
  int ends[2];
  if (::pipe(ends) != 0) throw std::runtime_error("no pipe");
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("no process");
  if (child == 0) {
    try {
      const Result result = work();
      ::_exit(::write(ends[1], &result, sizeof result) == sizeof result ? 0 : 1);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
    }
    ::_exit(1);
  }
  ::close(ends[1]);
  Result result{};
  const bool whole = ::read(ends[0], &result, sizeof result) == sizeof result;
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (!whole || status != 0) throw std::runtime_error("the measuring process failed");
  return result;
}

}  // namespace chunkhit
