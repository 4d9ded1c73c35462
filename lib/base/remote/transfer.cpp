#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <utility>

#include "base/remote/http_client.h"
#include "base/text.h"
#include "base/throw_error.h"
#include "base/words.h"
#include "chunkhit/error.h"

namespace chunkhit {

double retry_seconds() {
  const char* const text = std::getenv("CHUNKHIT_RETRY_SECONDS");
  if (text == nullptr) return 60;
  double seconds = 0;
  if (!parse_all(text, seconds) || !(seconds >= 0 && seconds <= 86400))
    throw_usage("CHUNKHIT_RETRY_SECONDS: found \"" + printable_text(text) + "\", expected 0 to 86400");
  return seconds;
}

Transfer::Transfer(std::string url, std::uint64_t offset, std::uint64_t byte_count,
                   std::optional<RemoteFileInfo> known, double retry_seconds, MutableBytes out)
    : url_(std::move(url)),
      offset_(offset),
      byte_count_(byte_count),
      retry_seconds_(retry_seconds),
      info_(std::move(known)),
      out_(out) {}

Transfer::Transfer(std::string url, std::uint64_t offset, const RemoteFileInfo& info, Bytes arrived)
    : url_(std::move(url)),
      offset_(offset),
      byte_count_(arrived.size()),
      retry_seconds_(0),
      info_(info),
      own_(arrived.begin(), arrived.end()),
      out_(own_),
      received_(arrived.size()),
      is_done_(true) {}

namespace {

constexpr std::chrono::milliseconds kStopInterval{50};

}  // namespace

const std::atomic<bool>*& stop_of_thread() {
  static thread_local const std::atomic<bool>* stop = nullptr;
  return stop;
}

/// Waits for the end, or for what `is_there` tells.
void Transfer::wait_until(std::unique_lock<std::mutex>& lock, const std::function<bool()>& is_there) {
  const std::atomic<bool>* const stop = stop_of_thread();
  const auto ends = [&] { return is_done_ || is_there(); };
  if (stop == nullptr) return changed_.wait(lock, ends);
  while (!changed_.wait_for(lock, kStopInterval, ends))
    if (*stop) {
      is_cancelled_ = is_done_ = true;
      fail(ErrorCode::try_again, "reading was stopped");
    }
}

// Under the lock.
void Transfer::fail(ErrorCode code, const std::string& what) {
  error_ = code;
  error_text_ = url_ + ": " + what;
}

void Transfer::throw_error() const {
  if (error_) throw Error(*error_, error_text_);
}

Bytes Transfer::wait(std::uint64_t count) {
  std::unique_lock lock(mutex_);
  wait_until(lock, [&] {
    if (received_ >= count) return true;
    awaited_ = std::min(awaited_, count);
    return false;
  });
  if (received_ < count) throw_error();
  if (received_ < count)
    throw_bad_data(url_ + ": ends at byte " + std::to_string(offset_ + received_) + ", expected " +
                   std::to_string(count - received_) + " more bytes");
  return out_.first(count);
}

RemoteFileInfo Transfer::wait_for_info() {
  std::unique_lock lock(mutex_);
  wait_until(lock, [] { return false; });
  throw_error();
  return *info_;
}

std::uint64_t Transfer::received() {
  const std::lock_guard lock(mutex_);
  return received_;
}

void Transfer::cancel() {
  {
    const std::lock_guard lock(mutex_);
    is_cancelled_ = true;
    if (!std::exchange(is_done_, true)) fail(ErrorCode::try_again, "reading was cancelled");
  }
  changed_.notify_all();
}

}  // namespace chunkhit
