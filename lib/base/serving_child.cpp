#include "base/serving_child.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <new>
#include <system_error>

#include "base/child_limits.h"
#include "base/memory.h"
#include "chunkhit/error.h"

namespace chunkhit {
namespace {

// Milliseconds.
constexpr int kFirstWait = 100;
constexpr int kLongestWait = 30'000;
constexpr int kLookAgain = 50;  // where the system cannot tell that a process has ended

// What a damaged file does to its reader; all else somebody did to the process.
constexpr int kCrashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

[[noreturn]] void run_child(FileDescriptor end, const std::function<void(ChildLine&)>& serve,
                            const ChildOptions& options) {
  const int line_end = end.get();
  become_child(options.max_seconds, line_end);
  if (options.max_memory_bytes > 0) limit_memory(options.max_memory_bytes);
  send_message(line_end, {ChildMessage::ready}, {});
  ChildLine line(std::move(end));
  const auto send_error = [line_end](ErrorCode code, const char* what) {
    stop_time();
    send_message(line_end, {ChildMessage::error, static_cast<std::uint64_t>(code)}, as_bytes(what));
  };
  try {
    serve(line);
  } catch (const Error& error) {
    send_error(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    send_message(line_end, {ChildMessage::no_memory}, {});
  } catch (const std::system_error& error) {
    send_error(ErrorCode::try_again, error.what());  // no more threads, or descriptors
  } catch (const std::exception& error) {
    send_error(ErrorCode::bad_data, error.what());
  }
  // Not exit: what the parent had buffered must not be written twice.
  ::_exit(0);
}

/// A descriptor that tells a process' end; none on systems before Linux 5.3, or where there are no more.
FileDescriptor open_process(pid_t process) {
#ifdef SYS_pidfd_open
  return FileDescriptor(static_cast<int>(::syscall(SYS_pidfd_open, process, 0U)));
#else
  static_cast<void>(process);
  return {};
#endif
}

/// An answer lies in the child's memory before it is sent: no machine sends more than it has.
bool is_possible(const ChildHeading& heading) {
  struct sysinfo machine {};
  if (::sysinfo(&machine) != 0 || heading.kind > ChildMessage::ready) return false;
  return heading.bytes / machine.mem_unit <= std::uint64_t{machine.totalram} + machine.totalswap;
}

bool is_code(std::uint64_t code) {
  constexpr ErrorCode kCodes[] = {ErrorCode::too_many_rejects, ErrorCode::usage, ErrorCode::bad_data,
                                  ErrorCode::cannot_write, ErrorCode::try_again};
  return std::ranges::find(kCodes, static_cast<ErrorCode>(code)) != std::end(kCodes);
}

}  // namespace

ServingChild::ServingChild(const std::function<void(ChildLine&)>& serve, ChildOptions options)
    : max_seconds_(options.max_seconds), max_memory_bytes_(options.max_memory_bytes) {
  for (int wait = kFirstWait; wait <= kLongestWait; wait *= 4) {
    start(serve, options.fork == nullptr ? ::fork : options.fork);
    if (is_ready(wait)) return;
    kill();
  }
  throw Error(ErrorCode::try_again, "cannot fork: the child does not begin");
}

void ServingChild::start(const std::function<void(ChildLine&)>& serve, pid_t (*fork)()) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw Error(ErrorCode::try_again, std::string("cannot open a line to a child: ") + error_text(errno));
  end_ = FileDescriptor(ends[0]);
  FileDescriptor child_end(ends[1]);
  status_.reset();
  child_ = fork();
  if (child_ < 0) throw Error(ErrorCode::try_again, std::string("cannot fork: ") + error_text(errno));
  if (child_ > 0) {
    process_ = open_process(child_);
    return;
  }
  ::close(end_.release());
  run_child(std::move(child_end), serve, {fork, max_seconds_, max_memory_bytes_});
}

/// A child that was forked while another thread held a lock that no one can give back now never tells that it
/// is there.
bool ServingChild::is_ready(int max_milliseconds) {
  pollfd waited[] = {{end_.get(), POLLIN, 0}, {process_.get(), POLLIN, 0}};
  int found = 0;
  while ((found = ::poll(waited, 2, max_milliseconds)) < 0 && errno == EINTR) {
  }
  ChildHeading heading;
  return found > 0 && receive_all(&heading, sizeof heading) && heading.kind == ChildMessage::ready;
}

bool ServingChild::has_ended() const {
  if (status_) return true;
  siginfo_t found{};
  const auto process = static_cast<id_t>(child_);
  return ::waitid(P_PID, process, &found, WEXITED | WNOHANG | WNOWAIT) != 0 || found.si_pid != 0;
}

/// Waits until the line is ready; false when the child has ended. Its end of the line may stay open: another
/// thread's fork at the wrong moment has a copy.
bool ServingChild::wait_for(short events) const {
  pollfd waited[] = {{end_.get(), events, 0}, {process_.get(), POLLIN, 0}};
  while (true) {
    const int found = ::poll(waited, 2, process_.is_open() ? -1 : kLookAgain);
    if (found > 0) return waited[0].revents != 0;
    if (found < 0 && errno != EINTR) return false;
    if (has_ended()) return false;
  }
}

bool ServingChild::send_all(const void* from, std::size_t bytes) const {
  const auto* at = static_cast<const char*>(from);
  while (bytes > 0) {
    const ssize_t sent = ::send(end_.get(), at, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN && wait_for(POLLOUT)) continue;
    if (sent <= 0) return false;
    at += sent;
    bytes -= static_cast<std::size_t>(sent);
  }
  return true;
}

bool ServingChild::receive_all(void* to, std::size_t bytes) const {
  auto* at = static_cast<char*>(to);
  bool has_ended = false;
  while (bytes > 0) {
    const ssize_t got = ::recv(end_.get(), at, bytes, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN && !has_ended) {
      has_ended = !wait_for(POLLIN);  // and once more for what it sent before
      continue;
    }
    if (got <= 0) return false;
    at += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

int ServingChild::wait_for_end() {
  if (status_) return *status_;
  int status = 0;
  pid_t found = 0;
  while ((found = ::waitpid(child_, &status, 0)) < 0 && errno == EINTR) {
  }
  // Where the program itself waits for all children nothing is known.
  status_ = found > 0 ? status : 0;
  return *status_;
}

void ServingChild::kill() {
  if (status_) return;
  ::kill(child_, SIGKILL);
  static_cast<void>(wait_for_end());
}

ServingChild::~ServingChild() { kill(); }

void ServingChild::ask(Bytes question) {
  ChildHeading heading;
  heading.bytes = question.size();
  // Where the child is gone, `receive` tells why.
  if (send_all(&heading, sizeof heading)) static_cast<void>(send_all(question.data(), question.size()));
}

ByteBuffer ServingChild::receive(const std::string& name) {
  ChildHeading heading;
  if (!receive_all(&heading, sizeof heading)) throw_end(name);
  if (!is_possible(heading)) throw_nonsense(name);
  ByteBuffer bytes(heading.bytes);
  if (!receive_all(bytes.data(), bytes.size())) throw_end(name);
  if (heading.kind == ChildMessage::answer) return bytes;
  if (heading.kind == ChildMessage::no_memory) throw std::bad_alloc();
  if (heading.kind == ChildMessage::ready || !is_code(heading.code)) throw_nonsense(name);
  throw Error(static_cast<ErrorCode>(heading.code), std::string(as_text(bytes)));
}

void ServingChild::throw_nonsense(const std::string& name) {
  kill();
  throw Error(ErrorCode::bad_data, name + ": reading it failed: its structure is damaged");
}

void ServingChild::throw_end(const std::string& name) {
  const int status = wait_for_end();
  if (!WIFSIGNALED(status)) throw Error(ErrorCode::bad_data, name + ": reading it failed");
  const int number = WTERMSIG(status);
  const std::string signal = ::strsignal(number);
  if (number == SIGPROF || number == SIGALRM) {
    const std::uint32_t seconds = number == SIGPROF ? max_seconds_ : max_seconds_ * kWallFactor;
    throw Error(ErrorCode::bad_data, name + ": reading it did not come on for " + std::to_string(seconds) +
                                         " seconds: its structure is damaged");
  }
  // HDF5 also crashes over memory that it does not get.
  if (std::ranges::find(kCrashes, number) != std::end(kCrashes) && has_memory_limit())
    throw Error(ErrorCode::try_again, name + ": reading it crashed (" + signal + "): it is damaged, or " +
                                          memory_limit_text() + "; without the limit it is known which");
  if (std::ranges::find(kCrashes, number) != std::end(kCrashes))
    throw Error(ErrorCode::bad_data,
                name + ": reading it crashed (" + signal + "): its structure is damaged");
  throw Error(ErrorCode::try_again,
              name + ": the process that read it was killed (" + signal + "), perhaps for lack of memory");
}

}  // namespace chunkhit
