// The batches of a loader: its threads fill them ahead, its caller has one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "read/batch_assembler.h"

namespace chunkhit {

/// Slots with a buffer each, of any kind. A slot belongs to one thread while it is filled, and to the caller
/// while it is handed out. All functions are for the caller, if not said otherwise.
class BatchSlots {
 public:
  /// `make_buffer` is called for each slot, and again for each buffer that the caller retains.
  BatchSlots(std::size_t count, std::function<std::shared_ptr<void>()> make_buffer);
  BatchSlots(const BatchSlots&) = delete;
  BatchSlots& operator=(const BatchSlots&) = delete;

  [[nodiscard]] std::size_t size() const { return slots_.size(); }
  struct State {
    MadeBatch made;
    std::exception_ptr error;
    bool ready = false;  ///< filled; guarded by the pipeline's lock
  };
  /// For the thread that fills the slot, too.
  [[nodiscard]] State& state(std::size_t slot) { return slots_[slot].state; }
  /// Gives all slots to the threads of a new pipeline; no thread may run.
  void restart();
  void hand_out(std::size_t slot) { handed_out_ = slot; }
  /// Must be called before the slot that was handed out goes back to the threads: puts another buffer into it
  /// if the caller retains this one. Returns whether a slot was handed out.
  bool take_back();
  /// How often a buffer left the ring because it was retained.
  [[nodiscard]] std::uint64_t kept_count() const { return kept_count_; }
  void reset_kept_count() { kept_count_ = 0; }

 protected:
  ~BatchSlots() = default;
  [[nodiscard]] void* buffer(std::size_t slot) const { return slots_[slot].buffer.get(); }
  [[nodiscard]] std::shared_ptr<void> handed_out_buffer() const {
    return handed_out_ ? slots_[*handed_out_].buffer : nullptr;
  }

 private:
  struct Slot {
    std::shared_ptr<void> buffer;
    State state;
  };
  [[nodiscard]] std::shared_ptr<void> take_returned();

  std::function<std::shared_ptr<void>()> make_buffer_;
  std::vector<Slot> slots_;
  std::vector<std::shared_ptr<void>> kept_;  // left the ring
  std::optional<std::size_t> handed_out_;
  std::uint64_t kept_count_ = 0;
};

/// Slots with buffers of one kind, each of which has a `batch`.
template <class Buffer>
class BatchRing final : public BatchSlots {
 public:
  using Batch = decltype(Buffer::batch);
  template <class MakeBuffer>
  BatchRing(std::size_t count, MakeBuffer make_buffer)
      : BatchSlots(count, [make = std::move(make_buffer)] { return std::make_shared<Buffer>(make()); }) {}
  /// For the thread that fills the slot, too.
  [[nodiscard]] Buffer& operator[](std::size_t slot) const { return *static_cast<Buffer*>(buffer(slot)); }
  /// The batch that was handed out, or null; it stays unchanged as long as anybody has it.
  [[nodiscard]] std::shared_ptr<const Batch> keep() const {
    const auto kept = std::static_pointer_cast<Buffer>(handed_out_buffer());
    return kept ? std::shared_ptr<const Batch>(kept, &kept->batch) : nullptr;
  }
};

}  // namespace chunkhit
