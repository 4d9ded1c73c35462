#include "base/child_line.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "base/child_limits.h"

namespace chunkhit {
namespace {

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

}  // namespace

bool send_message(int end, ChildHeading heading, Bytes bytes) {
  heading.bytes = bytes.size();
  return send_all(end, &heading, sizeof heading) && send_all(end, bytes.data(), bytes.size());
}

bool ChildLine::receive(ByteBuffer& question) {
  stop_time();
  ChildHeading heading;
  bool is_ready = receive_all(end_.get(), &heading, sizeof heading);
  if (is_ready) {
    question.resize(heading.bytes);  // our parent's word
    is_ready = receive_all(end_.get(), question.data(), question.size());
  }
  allow_more_time();
  return is_ready;
}

void ChildLine::answer(Bytes answer) {
  stop_time();
  if (!send_message(end_.get(), {}, answer)) ::_exit(0);  // the parent is gone
  allow_more_time();
}

}  // namespace chunkhit
