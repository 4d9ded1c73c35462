// Pages of memory of their own, given back at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace chunkhit {

/// Owns a mapping.
class MemoryMap {
 public:
  MemoryMap() = default;
  /// New, zeroed pages, in huge ones where the system gives them; taken when they are first written. Throws
  /// std::bad_alloc.
  static MemoryMap of_memory(std::size_t bytes);
  MemoryMap(MemoryMap&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  MemoryMap& operator=(MemoryMap&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~MemoryMap();
  [[nodiscard]] std::uint8_t* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return bytes_; }

 private:
  MemoryMap(std::uint8_t* data, std::size_t bytes) : data_(data), bytes_(bytes) {}
  std::uint8_t* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace chunkhit
