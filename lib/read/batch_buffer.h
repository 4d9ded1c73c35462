// The memory of one batch, used again and again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "chunkhit/reader.h"

namespace chunkhit {

/// Memory from the caller's allocator, or ours.
class BatchMemory {
 public:
  BatchMemory(const BatchAllocator& allocator, std::size_t bytes);
  BatchMemory(BatchMemory&& other) noexcept;
  BatchMemory& operator=(BatchMemory&&) = delete;
  ~BatchMemory();
  [[nodiscard]] std::uint8_t* data() const { return data_; }

 private:
  BatchAllocator allocator_;
  std::uint8_t* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Says that there is no memory for a ring of so many batches.
[[nodiscard]] std::string no_memory_text(std::size_t slots, double slot_bytes);

/// A batch being made or waiting to be used.
struct BatchBuffer {
  BatchMemory pixels;
  std::vector<std::int64_t> labels;
  std::vector<float> label_values;
  std::vector<std::uint64_t> samples;
  ImageBatch batch;  ///< views of the above
};

}  // namespace chunkhit
