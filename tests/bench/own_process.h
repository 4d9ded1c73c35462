// Measures in a process of its own: with untouched memory, and a peak that belongs to one run.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <type_traits>
#include <vector>

namespace chunkhit {

/// Gives what `work` returns for each number below `count`, in as many forked children at once. Throws
/// std::runtime_error when it fails in one, having written why to stderr. To be called before this process
/// has threads.
template <class Work>
auto in_own_processes(std::size_t count, Work work) {
  using Result = decltype(work(std::size_t{0}));
  static_assert(std::is_trivially_copyable_v<Result>);
  struct Child {
    pid_t pid;
    int results;  // to be read from
  };
  std::vector<Child> children;
  for (std::size_t number = 0; number < count; ++number) {
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error("no pipe");
    const pid_t pid = ::fork();
    if (pid < 0) throw std::runtime_error("no process");
    if (pid == 0) {
      try {
        const Result result = work(number);
        ::_exit(::write(ends[1], &result, sizeof result) == sizeof result ? 0 : 1);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
      }
      ::_exit(1);
    }
    ::close(ends[1]);
    children.push_back({pid, ends[0]});
  }
  std::vector<Result> results(count);
  bool are_whole = true;
  for (std::size_t number = 0; number < count; ++number) {
    const auto& [pid, from] = children[number];
    are_whole &= ::read(from, &results[number], sizeof(Result)) == sizeof(Result);
    ::close(from);
    int status = 0;
    ::waitpid(pid, &status, 0);
    are_whole &= status == 0;
  }
  if (!are_whole) throw std::runtime_error("a measuring process failed");
  return results;
}

/// The same of one process.
template <class Work>
auto in_own_process(Work work) {
  return in_own_processes(1, [&](std::size_t) { return work(); }).front();
}

}  // namespace chunkhit
