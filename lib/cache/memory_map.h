// Pages of memory: a file's, or new ones.
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
  /// Whether the file system can be trusted to keep a mapped file's pages readable.
  [[nodiscard]] static bool may_map(int fd);
  /// The first `bytes` of a file, read-only. Empty where may_map says no (a network file system may
  /// take a file away, which would end the process), or the system refuses.
  static MemoryMap of_file(int fd, std::size_t bytes);
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
  /// Asks the system to read these bytes soon.
  void read_ahead(std::size_t offset, std::size_t bytes) const;

 private:
  MemoryMap(std::uint8_t* data, std::size_t bytes) : data_(data), bytes_(bytes) {}
  std::uint8_t* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace chunkhit
