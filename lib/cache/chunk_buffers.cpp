#include "cache/chunk_buffers.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>

#include "base/bytes.h"

namespace chunkhit {

MemoryMap MemoryMap::of_memory(std::size_t bytes) {
  if (bytes == 0) return {};
  return map(MAP_PRIVATE | MAP_ANONYMOUS, -1, bytes);
}

MemoryMap MemoryMap::of_file(int fd, std::size_t bytes) { return map(MAP_SHARED, fd, bytes); }

MemoryMap MemoryMap::map(int flags, int fd, std::size_t bytes) {
  void* const data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
  if (data == MAP_FAILED) throw std::bad_alloc();
  ::madvise(data, bytes, MADV_HUGEPAGE);
  return {static_cast<std::uint8_t*>(data), bytes};
}

MemoryMap::~MemoryMap() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
}

namespace {

constexpr std::size_t kSlabBytes = std::size_t{64} << 20;

}  // namespace

ChunkBuffers::ChunkBuffers(std::size_t buffer_bytes, std::size_t expected_count)
    : buffer_bytes_(round_up(std::max<std::size_t>(buffer_bytes, 1), kCacheLineBytes)),
      expected_count_(expected_count) {}

void ChunkBuffers::make_slab() {
  const std::size_t expected = expected_count_ - std::min(made_count_, expected_count_);
  const std::size_t count =
      std::clamp<std::size_t>(expected, 1, std::max<std::size_t>(1, kSlabBytes / buffer_bytes_));
  MemoryMap slab = MemoryMap::of_memory(count * buffer_bytes_);
  next_ = slab.data();
  slabs_.push_back(std::move(slab));
  left_ = count;
}

std::uint8_t* ChunkBuffers::take() {
  if (free_.empty()) {
    if (left_ == 0) make_slab();
    // Room to give all of them back, so that this cannot fail.
    free_.reserve(made_count_ + 1);
    ++made_count_;
    --left_;
    return std::exchange(next_, next_ + buffer_bytes_);
  }
  std::uint8_t* const buffer = free_.back();
  free_.pop_back();
  return buffer;
}

}  // namespace chunkhit
