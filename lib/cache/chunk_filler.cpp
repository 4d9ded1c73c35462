#include "cache/chunk_filler.h"

#include <utility>

namespace chunkhit {

ChunkFiller::ChunkFiller(std::function<void(std::size_t)> fill)
    : fill_(std::move(fill)), thread_([this](const std::stop_token& stop) { run(stop); }) {}

void ChunkFiller::add(std::size_t chunk) {
  const std::lock_guard lock(mutex_);
  asked_.push_back(chunk);
  changed_.notify_one();
}

std::deque<std::size_t> ChunkFiller::forget() {
  const std::lock_guard lock(mutex_);
  return std::exchange(asked_, {});
}

bool ChunkFiller::stop() {
  thread_.request_stop();
  return has_ended_;
}

void ChunkFiller::run(const std::stop_token& stop) {
  for (std::unique_lock lock(mutex_); changed_.wait(lock, stop, [&] { return !asked_.empty(); });) {
    if (stop.stop_requested()) break;
    const std::size_t chunk = asked_.front();
    asked_.pop_front();
    lock.unlock();
    fill_(chunk);
    lock.lock();
  }
  has_ended_ = true;
}

}  // namespace chunkhit
