#include "read/batch_buffer.h"

#include <sys/mman.h>

#include <cstdlib>
#include <new>
#include <utility>

#include "base/bytes.h"
#include "base/words.h"
#include "chunkhit/error.h"

namespace chunkhit {
namespace {

constexpr std::size_t kHugePageBytes = 2 << 20;
constexpr std::size_t kLineBytes = 64;

void* allocate_pages(std::size_t bytes) {
  if (bytes < kHugePageBytes) return std::aligned_alloc(kLineBytes, round_up(bytes, kLineBytes));
  void* const memory = std::aligned_alloc(kHugePageBytes, round_up(bytes, kHugePageBytes));
  if (memory != nullptr) ::madvise(memory, round_up(bytes, kHugePageBytes), MADV_HUGEPAGE);
  return memory;
}

}  // namespace

BatchMemory::BatchMemory(const BatchAllocator& allocator, std::size_t bytes)
    : allocator_(allocator), bytes_(std::max<std::size_t>(bytes, 1)) {
  data_ =
      static_cast<std::uint8_t*>(allocator_.allocate ? allocator_.allocate(bytes_) : allocate_pages(bytes_));
  if (data_ == nullptr) throw std::bad_alloc();
  if (reinterpret_cast<std::uintptr_t>(data_) % kLineBytes != 0)
    throw Error(ErrorCode::usage, "allocator: gave memory that is not aligned to 64 bytes");
}

BatchMemory::BatchMemory(BatchMemory&& other) noexcept
    : allocator_(std::move(other.allocator_)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(other.bytes_) {}

std::string no_memory_text(std::size_t slots, double slot_bytes) {
  return "batches: " + std::to_string(slots) + " of " + bytes_text(slot_bytes) +
         " each are held, which is more memory than can be had: lower batch_size, prefetch or threads";
}

BatchMemory::~BatchMemory() {
  if (data_ == nullptr) return;
  if (allocator_.allocate)
    allocator_.release(data_, bytes_);
  else
    std::free(data_);
}

}  // namespace chunkhit
