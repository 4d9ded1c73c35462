// A request of the HTTP client: what it asks for, and where the bytes of the answer go.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/remote/curl.h"
#include "base/remote/http_client.h"
#include "base/remote/http_response.h"

namespace chunkhit {

/// Fewer bytes of files, in a second from one host, are none.
inline constexpr double kMinBytesPerSecond = 1024;

/// A time in which bytes of a file are counted.
struct HttpClient::Window {
  Clock::time_point begin;
  std::uint64_t received = 0;    ///< at the begin
  std::uint64_t host_bytes = 0;  ///< by all requests to the host, at the begin

  [[nodiscard]] double seconds(Clock::time_point now) const {
    return std::chrono::duration<double>(now - begin).count();
  }
  [[nodiscard]] bool is_fast(const Window& now) const {
    return static_cast<double>(now.received - received) >=
           kMinBytesPerSecond * std::max(1.0, seconds(now.begin));
  }
};

/// A transfer's request, over all of its tries.
struct HttpClient::Request {
  std::shared_ptr<Transfer> transfer;
  HttpResponse response;   // to the try that is being made
  CURL* handle = nullptr;  // while it is sent
  curl_slist* headers = nullptr;
  char error_text[CURL_ERROR_SIZE] = {};
  std::uint64_t received_before = 0;  // this try
  unsigned tries = 0;                 // since bytes came fast enough
  Window try_window;                  // of this try; begins again as long as bytes come
  Window failing;                     // valid where tries > 0
  Clock::time_point due;              // of the next try
  bool is_rejected = false;           // the answer's head says that its body is of no use
  bool lacks_memory = false;          // for its body

  Request() = default;
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;
  ~Request() { curl().slist_free_all(headers); }

  /// Ends the transfer, with an error where there is a code, and wakes the threads that wait for it.
  void finish(std::optional<ErrorCode> code = {}, const std::string& what = {}) {
    {
      const std::lock_guard lock(transfer->mutex_);
      if (transfer->is_cancelled_) return;
      if (code) transfer->fail(*code, what);
      transfer->is_done_ = true;
    }
    transfer->changed_.notify_all();
  }
  void add_header(const std::string& header) {
    curl_slist* const longer = curl().slist_append(headers, header.c_str());
    if (longer == nullptr) throw std::bad_alloc();
    headers = longer;
  }
  [[nodiscard]] std::string address();
  static std::size_t take_header(char* text, std::size_t size, std::size_t count, void* self);
  static std::size_t take_bytes(char* bytes, std::size_t size, std::size_t count, void* self);
  [[nodiscard]] bool accept_head();
  [[nodiscard]] bool make_room();
};

}  // namespace chunkhit
