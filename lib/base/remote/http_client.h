// Range requests by libcurl: several at a time over kept connections, on one thread, with retries.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/bytes.h"
#include "chunkhit/error.h"

namespace chunkhit {

class CurlSockets;

/// What a server says of a file.
struct RemoteFileInfo {
  std::uint64_t bytes = 0;
  std::string etag;  ///< empty where the server names none
  bool operator==(const RemoteFileInfo&) const = default;
};

/// The bytes [offset, offset + byte_count) of a file, or as many as it has, on their way. Any thread may
/// wait.
class Transfer {
 public:
  /// `known`: what the file must still be. `retry_seconds`: as the function. `out`: where the bytes go, as
  /// many; nothing is written there any more once waiting for them or `cancel` has returned. Empty: memory of
  /// the transfer.
  Transfer(std::string url, std::uint64_t offset, std::uint64_t byte_count,
           std::optional<RemoteFileInfo> known, double retry_seconds, MutableBytes out = {});
  /// Holds a copy of bytes that have arrived before.
  Transfer(std::string url, std::uint64_t offset, const RemoteFileInfo& info, Bytes arrived);
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;
  [[nodiscard]] const std::string& url() const { return url_; }
  [[nodiscard]] std::uint64_t offset() const { return offset_; }
  [[nodiscard]] std::uint64_t end() const { return offset_ + byte_count_; }
  /// Waits until the first `count` bytes have arrived. Throws bad_data where the file is not there, ends
  /// earlier or is another one than before, usage where the server refuses access, try_again where it does
  /// not respond.
  [[nodiscard]] Bytes wait(std::uint64_t count);
  /// Waits for the end, and returns what the server said of the file.
  [[nodiscard]] RemoteFileInfo wait_for_info();
  /// How many bytes have arrived.
  [[nodiscard]] std::uint64_t received();
  /// Ends it: a caller that waits for missing bytes gets try_again.
  void cancel();

 private:
  friend class HttpClient;
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  void wait_until(std::unique_lock<std::mutex>& lock, const std::function<bool()>& is_there);
  void fail(ErrorCode code, const std::string& what);
  void throw_error() const;

  const std::string url_;
  const std::uint64_t offset_;
  const std::uint64_t byte_count_;
  const double retry_seconds_;
  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::optional<RemoteFileInfo> info_;
  ByteBuffer own_;    // made when the first bytes arrive, where no place was given
  MutableBytes out_;  // where they go
  std::uint64_t received_ = 0;
  std::uint64_t awaited_ = kNone;  // the fewest bytes that a thread waits for
  bool is_done_ = false;
  bool is_cancelled_ = false;
  std::optional<ErrorCode> error_;
  std::string error_text_;
};

/// Sends the requests of a process, and waits for the answers on a thread of its own.
class HttpClient {
 public:
  HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;
  ~HttpClient();
  /// The client of this process: one as long as it has an owner, and another one in a forked child.
  [[nodiscard]] static std::shared_ptr<HttpClient> shared();
  /// Requests are sent in the order of these calls, kMaxRequests at a time.
  void start(std::shared_ptr<Transfer> transfer);
  static constexpr std::size_t kMaxRequests = 64;
  /// What requests of the process fail with; empty where none does.
  [[nodiscard]] static std::string trouble();
  void set_trouble(const std::string& text);

 private:
  using Clock = std::chrono::steady_clock;
  struct Window;
  struct Request;
  void run();
  void send_due(Clock::time_point now);
  void send(std::unique_ptr<Request> request);
  void collect();
  [[nodiscard]] std::uint64_t host_bytes(const std::string& host) const;
  [[nodiscard]] bool is_slow(const Request& request, const Window& now) const;
  void end_stalled(Clock::time_point now);
  void take_back(void* handle, int result);
  void settle(std::unique_ptr<Request> request, int result);
  [[nodiscard]] bool retry(Request& request, const std::string& reason);
  [[nodiscard]] std::chrono::milliseconds longest_wait() const;

  void* multi_;
  std::unique_ptr<CurlSockets> sockets_;
  std::vector<void*> idle_handles_;
  std::vector<std::unique_ptr<Request>> active_;
  std::deque<std::unique_ptr<Request>> waiting_;        // for their next try
  std::set<std::string> reached_;                       // hosts that have answered
  std::map<std::string, std::uint64_t> settled_bytes_;  // of hosts, by tries that have ended
  std::minstd_rand jitter_;
  pid_t process_;
  std::mutex mutex_;  // guards the three below
  std::deque<std::shared_ptr<Transfer>> wanted_;
  std::string trouble_;
  bool is_stopping_ = false;
  std::thread thread_;  // last: uses all above
};

/// What ends the waiting of this thread for transfers once it is true, or null.
[[nodiscard]] const std::atomic<bool>*& stop_of_thread();

/// How long a request is tried again while a server gives no bytes: CHUNKHIT_RETRY_SECONDS, or 60.
[[nodiscard]] double retry_seconds();

}  // namespace chunkhit
