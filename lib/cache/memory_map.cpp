#include "cache/memory_map.h"

#include <sys/mman.h>

#include <new>

namespace chunkhit {

MemoryMap MemoryMap::of_memory(std::size_t bytes) {
  if (bytes == 0) return {};
  void* const data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) throw std::bad_alloc();
  ::madvise(data, bytes, MADV_HUGEPAGE);
  return {static_cast<std::uint8_t*>(data), bytes};
}

MemoryMap::~MemoryMap() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
}

}  // namespace chunkhit
