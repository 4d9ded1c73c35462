#include "base/serving_child.h"

#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <new>

#include "chunkhit/error.h"

namespace chunkhit {
namespace {

constexpr std::uint32_t kWallFactor = 30;
constexpr std::uint64_t kAnswer = 0;
constexpr std::uint64_t kError = 1;
constexpr std::uint64_t kNoMemory = 2;
constexpr std::uint64_t kReady = 3;
// Milliseconds.
constexpr int kFirstWait = 100;
constexpr int kLongestWait = 30'000;

#ifdef __SANITIZE_ADDRESS__  // which reports crashes
constexpr int kOwnSignals[] = {SIGPROF, SIGALRM};
#else
constexpr int kOwnSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGPROF, SIGALRM};
#endif

/// Stands before every message.
struct Heading {
  std::uint64_t kind = kAnswer;
  std::uint64_t code = 0;  ///< of an error
  std::uint64_t bytes = 0;
};

/// Seconds of a child's limit; 0 elsewhere. A child has one thread.
std::uint32_t limit_here = 0;

bool send_all(int end, const void* from, std::size_t bytes) {
  const auto* at = static_cast<const char*>(from);
  while (bytes > 0) {
    const ssize_t sent = ::send(end, at, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += sent;
    bytes -= static_cast<std::size_t>(sent);
  }
  return true;
}

bool receive_all(int end, void* to, std::size_t bytes) {
  auto* at = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t got = ::recv(end, at, bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

bool send_message(int end, Heading heading, Bytes bytes) {
  heading.bytes = bytes.size();
  return send_all(end, &heading, sizeof heading) && send_all(end, bytes.data(), bytes.size());
}

bool receive_message(int end, Heading& heading, ByteBuffer& bytes) {
  if (!receive_all(end, &heading, sizeof heading)) return false;
  bytes.resize(heading.bytes);
  return receive_all(end, bytes.data(), bytes.size());
}

/// What the program does about signals is not the child's business; its crash leaves no file.
void leave_program(std::uint32_t most_seconds) {
  for (const int number : kOwnSignals) ::signal(number, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  limit_here = most_seconds;
  allow_more_time();
}

[[noreturn]] void run_child(FileDescriptor end, const std::function<void(ChildLine&)>& serve,
                            std::uint32_t most_seconds) {
  leave_program(most_seconds);
  const int line_end = end.get();
  send_message(line_end, {kReady}, {});
  ChildLine line(std::move(end));
  const auto send_error = [line_end](ErrorCode code, const char* what) {
    send_message(line_end, {kError, static_cast<std::uint64_t>(code)}, as_bytes(what));
  };
  try {
    serve(line);
  } catch (const Error& error) {
    send_error(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    send_message(line_end, {kNoMemory}, {});
  } catch (const std::exception& error) {
    send_error(ErrorCode::bad_data, error.what());
  }
  // Not exit: what the parent had buffered must not be written twice.
  ::_exit(0);
}

}  // namespace

bool ChildLine::receive(ByteBuffer& question) {
  Heading heading;
  const bool is_there = receive_message(end_.get(), heading, question);
  allow_more_time();
  return is_there;
}

void ChildLine::answer(Bytes answer) {
  if (!send_message(end_.get(), {}, answer)) ::_exit(0);  // the parent is gone
  allow_more_time();
}

ServingChild::ServingChild(const std::function<void(ChildLine&)>& serve, ChildOptions options)
    : most_seconds_(options.most_seconds) {
  for (int wait = kFirstWait; wait <= kLongestWait; wait *= 4) {
    start(serve, options.fork == nullptr ? ::fork : options.fork);
    if (is_ready(wait)) return;
    ::kill(child_, SIGKILL);
    wait_for_end();
  }
  throw Error(ErrorCode::try_again, "cannot fork: the child does not begin");
}

void ServingChild::start(const std::function<void(ChildLine&)>& serve, pid_t (*fork)()) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw Error(ErrorCode::try_again, std::string("cannot open a line to a child: ") + error_text(errno));
  end_ = FileDescriptor(ends[0]);
  FileDescriptor child_end(ends[1]);
  child_ = fork();
  if (child_ < 0) throw Error(ErrorCode::try_again, std::string("cannot fork: ") + error_text(errno));
  if (child_ > 0) return;
  ::close(end_.release());
  run_child(std::move(child_end), serve, most_seconds_);
}

/// A child that was forked while another thread held a lock that no one can give back now never tells that it
/// is there.
bool ServingChild::is_ready(int most_milliseconds) {
  pollfd waited{end_.get(), POLLIN, 0};
  int found = 0;
  while ((found = ::poll(&waited, 1, most_milliseconds)) < 0 && errno == EINTR) {
  }
  Heading heading;
  ByteBuffer nothing;
  return found > 0 && receive_message(end_.get(), heading, nothing) && heading.kind == kReady;
}

int ServingChild::wait_for_end() {
  int status = 0;
  pid_t found = 0;
  while ((found = ::waitpid(child_, &status, 0)) < 0 && errno == EINTR) {
  }
  child_ = -1;
  return found > 0 ? status : 0;
}

ServingChild::~ServingChild() {
  if (child_ < 0) return;
  // Also where another child has a copy of this end, and would keep it open.
  ::shutdown(end_.get(), SHUT_RDWR);
  static_cast<void>(wait_for_end());
}

void ServingChild::ask(Bytes question) {
  // Where the child is gone, `receive` tells why.
  static_cast<void>(send_message(end_.get(), {}, question));
}

ByteBuffer ServingChild::receive(const std::string& name) {
  Heading heading;
  ByteBuffer bytes;
  if (!receive_message(end_.get(), heading, bytes)) throw_end(name);
  if (heading.kind == kNoMemory) throw std::bad_alloc();
  if (heading.kind == kError) throw Error(static_cast<ErrorCode>(heading.code), std::string(as_text(bytes)));
  return bytes;
}

void ServingChild::throw_end(const std::string& name) {
  const int status = wait_for_end();
  std::string what = name + ": reading it failed";
  if (WIFSIGNALED(status)) {
    const int number = WTERMSIG(status);
    what = name + ": reading it crashed (" + ::strsignal(number) + ")";
    if (number == SIGPROF || number == SIGALRM)
      what = name + ": reading it did not come on for " +
             std::to_string(number == SIGPROF ? most_seconds_ : most_seconds_ * kWallFactor) + " seconds";
  }
  throw Error(ErrorCode::bad_data, what + ": its structure is damaged");
}

void allow_more_time() {
  if (limit_here == 0) return;
  itimerval limit{};
  limit.it_value.tv_sec = limit_here;
  ::setitimer(ITIMER_PROF, &limit, nullptr);
  ::alarm(limit_here * kWallFactor);
}

}  // namespace chunkhit
