// Waits for the sockets of libcurl's transfers by epoll: a call costs as much as the sockets that have
// something to say, while curl_multi_poll and curl_multi_perform look at all of them.
#pragma once

#include <chrono>
#include <optional>

#include "base/file.h"
#include "base/remote/curl.h"

namespace chunkhit {

/// One thread calls `wait`; any may call `wake`.
class CurlSockets {
 public:
  /// `multi` must have all of its transfers removed before this ends. Throws try_again.
  explicit CurlSockets(CURLM* multi);
  CurlSockets(const CurlSockets&) = delete;
  CurlSockets& operator=(const CurlSockets&) = delete;
  /// Sends and receives what can be; waits for something to do until `wake`, or no longer than the time.
  void wait(std::chrono::milliseconds longest);
  void wake();

 private:
  using Clock = std::chrono::steady_clock;
  static int watch(CURL* handle, curl_socket_t socket, int what, void* self, void* of_socket);
  static int set_timer(CURLM* multi, long milliseconds, void* self);

  CURLM* multi_;
  FileDescriptor epoll_;
  FileDescriptor wakes_;
  std::optional<Clock::time_point> due_;  // of libcurl's own timer
};

}  // namespace chunkhit
