// libcurl, loaded when the first URL is opened: it brings some 30 libraries along, which would cost every
// command and every training process 6 ms at its start.
#pragma once

#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

#include <chrono>
#include <optional>

#include "base/file.h"

namespace chunkhit {

/// The functions of libcurl that we use, under their names without "curl_".
struct CurlFunctions {
  decltype(&::curl_global_init) global_init;
  decltype(&::curl_easy_init) easy_init;
  decltype(&::curl_easy_reset) easy_reset;
  decltype(&::curl_easy_cleanup) easy_cleanup;
  decltype(&::curl_easy_setopt) easy_setopt;
  decltype(&::curl_easy_strerror) easy_strerror;
  decltype(&::curl_multi_init) multi_init;
  decltype(&::curl_multi_cleanup) multi_cleanup;
  decltype(&::curl_multi_setopt) multi_setopt;
  decltype(&::curl_multi_add_handle) multi_add_handle;
  decltype(&::curl_multi_remove_handle) multi_remove_handle;
  decltype(&::curl_multi_socket_action) multi_socket_action;
  decltype(&::curl_multi_info_read) multi_info_read;
  decltype(&::curl_slist_append) slist_append;
  decltype(&::curl_slist_free_all) slist_free_all;
};

/// Loads libcurl at the first call; throws try_again where it is not installed.
[[nodiscard]] const CurlFunctions& curl();

/// Sets what all requests have in common.
void set_common_options(CURL* handle, double connect_seconds);

/// Returns whether another try may end otherwise.
[[nodiscard]] bool is_transient(CURLcode result);

/// Waits for the sockets of transfers by epoll: a call costs as much as the sockets that have something to
/// say, while curl_multi_poll and curl_multi_perform look at all of them. One thread calls `wait`; any may
/// call `wake`.
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
