// The memory of batches, slot by slot; what the caller keeps leaves the ring.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace chunkhit {

/// Owns a buffer a slot. The slots are filled by threads; all functions are for the caller of the loader.
template <class Buffer>
class SlotRing {
 public:
  /// `make_buffer` is asked for each slot, and again for each buffer that is kept.
  SlotRing(std::size_t slots, std::function<Buffer()> make_buffer) : make_buffer_(std::move(make_buffer)) {
    for (std::size_t i = 0; i < slots; ++i) slots_.push_back(std::make_shared<Buffer>(make_buffer_()));
  }
  [[nodiscard]] Buffer& operator[](std::size_t slot) const { return *slots_[slot]; }
  /// Must be called before the slot that was handed out goes back to the threads: puts another buffer into it
  /// where somebody keeps this one.
  void take_back() {
    if (!handed_out_) return;
    std::shared_ptr<Buffer>& slot = slots_[*handed_out_];
    if (!is_free(slot)) {
      // Where no memory is to be had, the slot stays with who keeps it, and the next call tries again.
      std::shared_ptr<Buffer> other = take_returned();
      kept_.push_back(slot);
      slot = std::move(other);
      ++kept_count_;
    }
    handed_out_.reset();
  }
  void hand_out(std::optional<std::size_t> slot) { handed_out_ = slot; }
  /// The buffer that was handed out; it lives as long as anybody has it.
  [[nodiscard]] std::shared_ptr<Buffer> keep() const { return handed_out_ ? slots_[*handed_out_] : nullptr; }
  /// How often a buffer left the ring because it was kept.
  [[nodiscard]] std::uint64_t kept_count() const { return kept_count_; }
  void reset_kept_count() { kept_count_ = 0; }

 private:
  /// Whether nobody else has a buffer; what its last holder read was read before.
  static bool is_free(const std::shared_ptr<Buffer>& buffer) {
    if (buffer.use_count() != 1) return false;
    std::atomic_thread_fence(std::memory_order_acquire);
    return true;
  }

  /// A buffer that nobody keeps any more, or a new one.
  std::shared_ptr<Buffer> take_returned() {
    for (std::shared_ptr<Buffer>& each : kept_) {
      if (!is_free(each)) continue;
      std::swap(each, kept_.back());
      std::shared_ptr<Buffer> returned = std::move(kept_.back());
      kept_.pop_back();
      return returned;
    }
    return std::make_shared<Buffer>(make_buffer_());
  }

  std::function<Buffer()> make_buffer_;
  std::vector<std::shared_ptr<Buffer>> slots_;
  std::vector<std::shared_ptr<Buffer>> kept_;  // left the ring
  std::optional<std::size_t> handed_out_;
  std::uint64_t kept_count_ = 0;
};

}  // namespace chunkhit
