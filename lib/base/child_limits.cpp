#include "base/child_limits.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>

namespace chunkhit {
namespace {

#ifndef __has_feature
#define __has_feature(feature) 0  // clang's; GCC has macros instead
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)  // which reports crashes
constexpr int kOwnSignals[] = {SIGPROF, SIGCHLD};
#else
constexpr int kOwnSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGPROF, SIGCHLD};
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || __has_feature(address_sanitizer) || \
    __has_feature(thread_sanitizer)
constexpr bool kReportsToErrors = true;
#else
constexpr bool kReportsToErrors = false;
#endif
// What a terminal or a service manager sends to all: the parent decides, and handlers are the parent's.
constexpr int kSignalsOfParent[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};

/// Seconds of CPU time of this child's limit; 0 elsewhere.
std::uint32_t limit_here = 0;
/// Seconds on the wall that are left; 0 while they are not counted.
volatile std::sig_atomic_t ticks_left = 0;
pid_t parent_here = 0;

/// Counts seconds in which the child runs: those in which it and its parent were stopped (Ctrl-Z) are one.
void tick(int) {
  if (::getppid() != parent_here) ::_exit(0);
  if (ticks_left == 0) return;
  ticks_left = ticks_left - 1;
  if (ticks_left > 0) return;
  ::signal(SIGALRM, SIG_DFL);
  ::raise(SIGALRM);
}

void start_ticks() {
  struct sigaction action {};
  action.sa_handler = tick;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGALRM, &action, nullptr);
  const itimerval each_second{{1, 0}, {1, 0}};
  ::setitimer(ITIMER_REAL, &each_second, nullptr);
}

/// Where the program had closed stderr, its number may be that of a file to be read, or of one in memory.
void silence_errors(int line_end) {
  struct stat errors {};
  if (kReportsToErrors || line_end == STDERR_FILENO || ::fstat(STDERR_FILENO, &errors) != 0) return;
  if ((::fcntl(STDERR_FILENO, F_GETFL) & O_ACCMODE) == O_RDONLY) return;
  if (S_ISREG(errors.st_mode) && errors.st_nlink == 0) return;
  const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere < 0) return;
  ::dup2(nowhere, STDERR_FILENO);
  ::close(nowhere);
}

void limit_cpu_time(std::uint32_t seconds) {
  itimerval limit{};
  limit.it_value.tv_sec = seconds;
  ::setitimer(ITIMER_PROF, &limit, nullptr);
}

}  // namespace

void become_child(std::uint32_t max_seconds, int line_end) {
  for (const int number : kOwnSignals) ::signal(number, SIG_DFL);
  for (const int number : kSignalsOfParent) ::signal(number, SIG_IGN);
  parent_here = ::getppid();
  limit_here = max_seconds;
  start_ticks();
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  silence_errors(line_end);
  allow_more_time();
}

void limit_memory(std::uint64_t bytes) {
  std::ifstream file("/proc/self/statm");
  std::uint64_t pages = 0;
  for (int field = 0; field < 6; ++field) file >> pages;  // the sixth: data and stack
  rlimit limit{};
  if (kReportsToErrors || !file || ::getrlimit(RLIMIT_DATA, &limit) != 0) return;
  limit.rlim_cur =
      std::min<rlim_t>(limit.rlim_max, pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) + bytes);
  ::setrlimit(RLIMIT_DATA, &limit);
}

void allow_more_time() {
  if (limit_here == 0) return;
  limit_cpu_time(limit_here);
  ticks_left = static_cast<std::sig_atomic_t>(limit_here * kWallFactor);
}

void stop_time() {
  if (limit_here == 0) return;
  ticks_left = 0;
  limit_cpu_time(0);
}

}  // namespace chunkhit
