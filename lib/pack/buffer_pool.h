// Buffers that come back when nobody needs them, so that a steady run allocates nothing.
#pragma once

#include <oneapi/tbb/concurrent_queue.h>

#include <memory>

namespace chunkhit {

/// Lends buffers; any thread may take one and give it back. Outlives whoever holds one.
template <class Buffer>
class BufferPool {
 public:
  std::shared_ptr<Buffer> get() {
    Buffer* buffer = nullptr;
    if (!free_.try_pop(buffer)) buffer = new Buffer;
    return {buffer, [this](Buffer* returned) { free_.push(returned); }};
  }
  ~BufferPool() {
    for (Buffer* buffer = nullptr; free_.try_pop(buffer);) delete buffer;
  }

 private:
  tbb::concurrent_queue<Buffer*> free_;
};

}  // namespace chunkhit
