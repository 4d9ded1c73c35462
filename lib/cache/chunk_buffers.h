// Memory for the chunks that come and go.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace chunkhit {

/// Owns a mapping.
class MemoryMap {
 public:
  MemoryMap() = default;
  /// New, zeroed pages, in huge ones where the system gives them; taken when they are first written. Throws
  /// std::bad_alloc.
  static MemoryMap of_memory(std::size_t bytes);
  /// The pages of a file, which is shared. Throws std::bad_alloc.
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

 private:
  static MemoryMap map(int flags, int fd, std::size_t bytes);
  MemoryMap(std::uint8_t* data, std::size_t bytes) : data_(data), bytes_(bytes) {}
  std::uint8_t* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Gives buffers of one size, and takes them back to give them again. They are cut from slabs of huge pages,
/// because the first write to a small page costs half as much as decoding what fills it. One thread at a
/// time.
class ChunkBuffers {
 public:
  /// `expected_count`: so many are there at a time as a rule; slabs hold no more than these, later buffers
  /// have pages of their own.
  ChunkBuffers(std::size_t buffer_bytes, std::size_t expected_count);
  /// Throws std::bad_alloc.
  [[nodiscard]] std::uint8_t* take();
  void give_back(std::uint8_t* buffer) { free_.push_back(buffer); }
  [[nodiscard]] bool has_free() const { return !free_.empty(); }

 private:
  void make_slab();

  std::size_t buffer_bytes_;  // a multiple of cache lines
  std::size_t expected_count_;
  std::size_t made_count_ = 0;  // free or taken
  std::vector<MemoryMap> slabs_;
  std::vector<std::uint8_t*> free_;
  std::uint8_t* next_ = nullptr;  // of the last slab
  std::size_t left_ = 0;          // buffers there
};

}  // namespace chunkhit
