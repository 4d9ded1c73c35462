// An HTTP server over a folder, for range requests of one process's tests.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"

namespace chunkhit {

/// Answers GET requests with a range, each connection on a thread of its own.
class RangeServer {
 public:
  /// What is done with a request, by its number: the bytes of its answer, or what it leaves of them.
  using Change = std::function<std::string(std::uint64_t number, std::string answer)>;
  explicit RangeServer(std::string root, Change change = {})
      : root_(std::move(root)), change_(std::move(change)), socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    ::setenv("no_proxy", "*", 1);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (::bind(socket_, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(socket_, 64) != 0 ||
        ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) != 0)
      throw std::runtime_error("no server can be started");
    port_ = ntohs(address.sin_port);
    accepting_ = std::thread([this] { accept(); });
  }
  RangeServer(const RangeServer&) = delete;
  RangeServer& operator=(const RangeServer&) = delete;
  ~RangeServer() {
    is_stopping_ = true;
    ::shutdown(socket_, SHUT_RDWR);
    accepting_.join();
    {
      const std::lock_guard lock(mutex_);
      for (const int connection : connections_) ::shutdown(connection, SHUT_RDWR);
    }
    for (std::thread& thread : serving_) thread.join();
    for (const int connection : connections_) ::close(connection);
    ::close(socket_);
  }

  [[nodiscard]] std::string url(const std::string& file) const {
    return "http://127.0.0.1:" + std::to_string(port_) + "/" + file;
  }
  [[nodiscard]] std::uint64_t request_count() const { return request_count_; }
  /// From now on requests are taken, but never answered.
  void fall_silent() { is_silent_ = true; }

 private:
  void accept() {
    while (!is_stopping_) {
      const int connection = ::accept(socket_, nullptr, nullptr);
      if (connection < 0) return;
      const std::lock_guard lock(mutex_);
      connections_.push_back(connection);
      serving_.emplace_back([this, connection] { serve(connection); });
    }
  }

  void serve(int connection) {
    std::string text;
    char block[4096];
    for (ssize_t got = 0; (got = ::recv(connection, block, sizeof block, 0)) > 0;) {
      text.append(block, static_cast<std::size_t>(got));
      const std::size_t end = text.find("\r\n\r\n");
      if (end == std::string::npos) continue;
      const std::string head = text.substr(0, end + 2);
      text.erase(0, end + 4);
      const std::uint64_t number = request_count_++;
      while (is_silent_ && !is_stopping_) ::usleep(1000);
      if (is_stopping_) return;
      const std::string whole = answer(head);
      const std::string sent = change_ ? change_(number, whole) : whole;
      if (::send(connection, sent.data(), sent.size(), MSG_NOSIGNAL) < 0) return;
      if (sent.size() != whole.size()) break;
    }
    ::shutdown(connection, SHUT_RDWR);
  }

  [[nodiscard]] std::string answer(const std::string& head) const {
    const std::size_t slash = head.find('/');
    const std::string file = root_ + head.substr(slash, head.find(' ', slash) - slash);
    if (!file_exists(file)) return "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
    const ByteBuffer bytes = read_file(file, std::uint64_t{1} << 30);
    const std::size_t range = head.find("Range: bytes=") + 13;
    const std::size_t first = std::stoull(head.substr(range));
    const std::size_t last =
        std::min<std::size_t>(std::stoull(head.substr(head.find('-', range) + 1)), bytes.size() - 1);
    return "HTTP/1.1 206 Partial Content\r\nETag: \"x\"\r\nContent-Length: " +
           std::to_string(last + 1 - first) + "\r\nContent-Range: bytes " + std::to_string(first) + "-" +
           std::to_string(last) + "/" + std::to_string(bytes.size()) + "\r\n\r\n" +
           std::string(as_text(Bytes(bytes).subspan(first, last + 1 - first)));
  }

  std::string root_;
  Change change_;
  int socket_;
  int port_ = 0;
  std::atomic<std::uint64_t> request_count_ = 0;
  std::atomic<bool> is_silent_ = false;
  std::atomic<bool> is_stopping_ = false;
  std::mutex mutex_;  // guards the two below
  std::vector<int> connections_;
  std::vector<std::thread> serving_;
  std::thread accepting_;
};

}  // namespace chunkhit
