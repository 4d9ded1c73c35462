#include "read/isolated.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <exception>

#include "base/file.h"
#include "chunkhit/error.h"

namespace chunkhit {
namespace {

/// Texts go through the pipe with a zero byte behind each.
void send(int pipe, const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all.append(text.c_str()).push_back('\0');
  for (std::size_t sent = 0; sent < all.size();) {
    const ssize_t now = ::write(pipe, all.data() + sent, all.size() - sent);
    if (now < 0 && errno == EINTR) continue;
    if (now <= 0) ::_exit(1);
    sent += static_cast<std::size_t>(now);
  }
}

std::vector<std::string> receive(int pipe) {
  std::vector<std::string> texts;
  std::string text;
  char block[4096];
  while (true) {
    const ssize_t got = ::read(pipe, block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return texts;
    for (ssize_t at = 0; at < got; ++at) {
      if (block[at] != '\0') {
        text += block[at];
        continue;
      }
      texts.push_back(text);
      text.clear();
    }
  }
}

[[noreturn]] void run_child(int pipe, const std::function<std::vector<std::string>()>& check) {
  try {
    send(pipe, check());
  } catch (const std::exception& error) {
    send(pipe, {error.what()});
  }
  // Not exit: what the parent had buffered must not be written twice.
  ::_exit(0);
}

}  // namespace

std::vector<std::string> run_isolated(const std::string& name,
                                      const std::function<std::vector<std::string>()>& check) {
  int ends[2];
  if (::pipe(ends) != 0)
    throw Error(ErrorCode::try_again, std::string("cannot open a pipe: ") + error_text(errno));
  const FileDescriptor read_end(ends[0]);
  FileDescriptor write_end(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) throw Error(ErrorCode::try_again, std::string("cannot fork: ") + error_text(errno));
  if (child == 0) run_child(write_end.get(), check);
  ::close(write_end.release());
  std::vector<std::string> faults = receive(read_end.get());
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status))
    faults.push_back(name + ": reading it crashed (" + ::strsignal(WTERMSIG(status)) +
                     "): its structure is damaged");
  else if (WEXITSTATUS(status) != 0)
    faults.push_back(name + ": reading it failed");
  return faults;
}

}  // namespace chunkhit
