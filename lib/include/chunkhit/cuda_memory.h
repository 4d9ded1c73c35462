// Pinned memory for loaders, memory of the device, and a feed that copies a loader's batches there, ahead of
// their use, on a stream of its own.
#pragma once

#include <chunkhit/cuda_kernels.h>
#include <chunkhit/error.h>
#include <chunkhit/loader.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace chunkhit::cuda {

/// Returns an allocator of pinned memory, which the GPU copies from without the CPU. Where there is not
/// enough, the loader throws try_again.
[[nodiscard]] inline BatchAllocator pinned_allocator() {
  const auto allocate = [](std::size_t bytes) -> void* {
    void* memory = nullptr;
    const cudaError_t result = cudaHostAlloc(&memory, bytes, cudaHostAllocPortable);
    if (result != cudaErrorMemoryAllocation) check(result, "cudaHostAlloc");
    static_cast<void>(cudaGetLastError());
    return memory;
  };
  return {allocate, [](void* memory, std::size_t) { static_cast<void>(cudaFreeHost(memory)); }};
}

/// Memory of the device, which grows when it is needed.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  ~DeviceMemory() { static_cast<void>(cudaFree(data_)); }

  /// Returns room for values, of any content, aligned to 256 bytes. Growing waits for the device.
  template <class Value>
  [[nodiscard]] Value* reserve(std::size_t count) {
    const std::size_t bytes = std::max<std::size_t>(count * sizeof(Value), 1);
    if (bytes > capacity_) grow(bytes);
    return static_cast<Value*>(data_);
  }
  /// Copies values to the device. They must stay as they are until the stream is that far.
  template <class Value>
  [[nodiscard]] Value* copy(std::span<const Value> values, cudaStream_t stream) {
    auto* const copied = reserve<Value>(values.size());
    if (!values.empty())
      check(cudaMemcpyAsync(copied, values.data(), values.size_bytes(), cudaMemcpyHostToDevice, stream),
            "cudaMemcpyAsync");
    return copied;
  }

 private:
  void grow(std::size_t bytes) {
    // Half as much again, so that batches which grow a little each time do not allocate each time.
    const std::size_t wanted = capacity_ == 0 ? bytes : std::max(bytes, capacity_ + capacity_ / 2);
    capacity_ = 0;
    check(cudaFree(std::exchange(data_, nullptr)), "cudaFree");
    check(cudaMalloc(&data_, wanted), "cudaMalloc");
    capacity_ = wanted;
  }

  void* data_ = nullptr;
  std::size_t capacity_ = 0;
};

/// Event without a time.
class Event {
 public:
  Event() { check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreateWithFlags"); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { static_cast<void>(cudaEventDestroy(event_)); }
  void record(cudaStream_t stream) { check(cudaEventRecord(event_, stream), "cudaEventRecord"); }
  /// Lets what the stream gets from now on wait for what was recorded; nothing was: returns at once.
  void delay(cudaStream_t stream) const {
    check(cudaStreamWaitEvent(stream, event_, 0), "cudaStreamWaitEvent");
  }
  /// Waits for what was recorded; nothing was: returns at once.
  void synchronize() const { check(cudaEventSynchronize(event_), "cudaEventSynchronize"); }

 private:
  cudaEvent_t event_ = nullptr;
};

/// Stream that does not wait for the default stream.
class Stream {
 public:
  Stream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags"); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { static_cast<void>(cudaStreamDestroy(stream_)); }
  [[nodiscard]] cudaStream_t get() const { return stream_; }
  void synchronize() const { check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

 private:
  cudaStream_t stream_ = nullptr;
};

/// How batches reach the device.
struct DeviceOptions {
  cudaStream_t stream = nullptr;   ///< the caller's stream, on which batches are used
  std::size_t device_batches = 2;  ///< batches in device memory: the current one and those ahead
};

/// Copies the batches of a loader to the device. A host batch is retained until it was copied; a device batch
/// is overwritten once the caller's stream has done all that it had when the next one was asked for.
/// `Made`: what a batch is on the device, with its memory.
template <class Loader, class Host, class Made>
class DeviceFeed {
 public:
  /// Copies a batch and converts it, on the stream. May throw, and is called again with the same batch then.
  using Copy = std::function<void(const Host& host, cudaStream_t stream, Made& made)>;

  DeviceFeed(Loader loader, const DeviceOptions& options, Copy copy)
      : loader_(std::move(loader)), user_(options.stream), copy_(std::move(copy)) {
    if (options.device_batches == 0) throw Error(ErrorCode::usage, "device_batches: must be at least 1");
    for (std::size_t i = 0; i < options.device_batches; ++i) {
      slots_.push_back(std::make_unique<Slot>());
      free_.push_back(slots_.back().get());
    }
  }
  DeviceFeed(const DeviceFeed&) = delete;
  DeviceFeed& operator=(const DeviceFeed&) = delete;
  /// Waits for copies, which read the loader's memory.
  ~DeviceFeed() { static_cast<void>(cudaStreamSynchronize(stream_.get())); }

  [[nodiscard]] const Loader& loader() const { return loader_; }
  [[nodiscard]] Loader& loader() { return loader_; }

  /// Begins an epoch; batches ahead are dropped.
  void epoch(std::uint64_t epoch) {
    static_cast<void>(loader_.epoch(epoch));
    forget();
  }
  void restore(const std::string& state) {
    loader_.restore(state);
    forget();
  }
  /// Returns the loader's state after the current batch, without those ahead.
  [[nodiscard]] std::string state() const { return state_ ? *state_ : loader_.state(); }

  /// Returns the next batch, or null at the end of the epoch. The caller's stream waits for its copy, the
  /// caller only for the loader.
  [[nodiscard]] const Made* next() {
    release_current();
    if (ahead_.empty() && !send()) {
      state_.reset();
      return nullptr;
    }
    ahead_.front()->ready.delay(user_);
    current_ = ahead_.front();
    ahead_.pop_front();
    state_ = current_->state;
    send_ready();
    return &current_->made;
  }

 private:
  struct Slot {
    std::shared_ptr<const Host> host;
    std::string state;  // of the loader, after this batch
    Event ready;        // the copy is done
    Event used;         // the caller's stream is done with it
    Made made;
  };

  void release_current() {
    if (current_ == nullptr) return;
    current_->used.record(user_);
    free_.push_back(std::exchange(current_, nullptr));
  }

  void forget() {
    stream_.synchronize();
    release_current();
    free_.insert(free_.end(), ahead_.begin(), ahead_.end());
    ahead_.clear();
    unsent_.reset();
    state_.reset();
    is_at_end_ = false;
  }

  /// Takes a batch from the loader, unless one is left that could not be sent; returns whether there is one.
  bool take() {
    if (unsent_) return true;
    if (is_at_end_) return false;
    is_at_end_ = loader_.next() == nullptr;
    if (is_at_end_) return false;
    unsent_ = loader_.retain();
    unsent_state_ = loader_.state();
    return true;
  }

  /// Sends the next batch on its way; returns false at the end of the epoch.
  bool send() {
    if (!take()) return false;
    Slot& slot = *free_.front();
    // Of the batch before in this slot; bounds how far the caller runs ahead of the device.
    slot.ready.synchronize();
    slot.host.reset();
    slot.used.delay(stream_.get());
    copy_(*unsent_, stream_.get(), slot.made);
    slot.ready.record(stream_.get());
    slot.host = std::move(unsent_);
    slot.state = std::move(unsent_state_);
    free_.pop_front();
    ahead_.push_back(&slot);
    return true;
  }

  /// Sends the batches that the loader has ready.
  void send_ready() {
    try {
      while (!free_.empty() && !is_at_end_ && (unsent_ || loader_.wait_for(std::chrono::milliseconds(0))))
        if (!send()) return;
    } catch (const Error&) {  // thrown again when the batch is asked for; the current one is not lost
    }
  }

  Loader loader_;
  cudaStream_t user_;
  Copy copy_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::deque<Slot*> free_, ahead_;
  Slot* current_ = nullptr;
  std::shared_ptr<const Host> unsent_;
  std::string unsent_state_;
  std::optional<std::string> state_;  // after the current batch; not set: the loader's
  bool is_at_end_ = false;
  Stream stream_;  // of the copies
};

}  // namespace chunkhit::cuda
