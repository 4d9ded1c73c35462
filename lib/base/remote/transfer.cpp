#include <algorithm>
#include <utility>

#include "base/remote/http_client.h"
#include "chunkhit/error.h"

namespace chunkhit {

ByteBuffer TransferBuffers::take(std::size_t bytes) {
  ByteBuffer buffer;
  {
    const std::lock_guard lock(mutex_);
    const auto found =
        std::ranges::find_if(kept_, [&](const auto& each) { return each.capacity() >= bytes; });
    if (found != kept_.end()) {
      buffer.swap(*found);
      kept_.erase(found);
    }
  }
  buffer.resize(bytes);
  return buffer;
}

void TransferBuffers::give_back(ByteBuffer buffer) {
  buffer.clear();
  const std::lock_guard lock(mutex_);
  kept_.push_back(std::move(buffer));
  if (kept_.size() > kMaxKept) kept_.erase(kept_.begin());
}

Transfer::Transfer(std::string url, std::uint64_t offset, std::uint64_t byte_count,
                   std::optional<FileFacts> known, double retry_seconds)
    : url_(std::move(url)),
      offset_(offset),
      byte_count_(byte_count),
      retry_seconds_(retry_seconds),
      facts_(std::move(known)) {}

Transfer::~Transfer() {
  if (buffers_) buffers_->give_back(std::move(bytes_));
}

void Transfer::wait_until(std::unique_lock<std::mutex>& lock, std::uint64_t count) {
  changed_.wait(lock, [&] { return is_done_ || received_ >= count; });
  if (received_ < count) throw_error();
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
  wait_until(lock, count);
  if (received_ < count)
    throw Error(ErrorCode::bad_data, url_ + ": ends at byte " + std::to_string(offset_ + received_) +
                                         ", expected " + std::to_string(count - received_) + " more bytes");
  return Bytes(bytes_).first(count);
}

FileFacts Transfer::wait_for_facts() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return is_done_; });
  throw_error();
  return *facts_;
}

Bytes Transfer::wait_for_all() {
  std::unique_lock lock(mutex_);
  wait_until(lock, byte_count_);
  return Bytes(bytes_).first(received_);
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
