#include "read/batch_ring.h"

#include <atomic>

namespace chunkhit {
namespace {

/// Whether nobody else has a buffer; what its last holder read was read before.
bool is_free(const std::shared_ptr<void>& buffer) {
  if (buffer.use_count() != 1) return false;
  std::atomic_thread_fence(std::memory_order_acquire);
  return true;
}

}  // namespace

BatchSlots::BatchSlots(std::size_t count, std::function<std::shared_ptr<void>()> make_buffer)
    : make_buffer_(std::move(make_buffer)) {
  for (std::size_t i = 0; i < count; ++i) slots_.push_back({make_buffer_(), {}});
}

void BatchSlots::restart() {
  static_cast<void>(take_back());
  for (Slot& slot : slots_) slot.state = {};
}

bool BatchSlots::take_back() {
  if (!handed_out_) return false;
  std::shared_ptr<void>& buffer = slots_[*handed_out_].buffer;
  if (!is_free(buffer)) {
    // Without memory for another buffer the slot stays handed out, and the next call tries again.
    std::shared_ptr<void> other = take_returned();
    kept_.push_back(buffer);
    buffer = std::move(other);
    ++kept_count_;
  }
  handed_out_.reset();
  return true;
}

/// A buffer that nobody retains any more, or a new one.
std::shared_ptr<void> BatchSlots::take_returned() {
  for (std::shared_ptr<void>& each : kept_) {
    if (!is_free(each)) continue;
    std::swap(each, kept_.back());
    std::shared_ptr<void> returned = std::move(kept_.back());
    kept_.pop_back();
    return returned;
  }
  return make_buffer_();
}

}  // namespace chunkhit
