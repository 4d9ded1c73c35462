#include "read/batch_buffer.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <new>
#include <utility>

#include "base/bytes.h"
#include "base/words.h"
#include "chunkhit/error.h"

namespace chunkhit {
namespace {

constexpr std::size_t kHugePageBytes = 2 << 20;
constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kLineBytes = 64;

std::size_t page_bytes(std::size_t bytes) {
  return round_up(bytes, bytes < kHugePageBytes ? kPageBytes : kHugePageBytes);
}

/// Pages of their own: what the C library's allocator gives back it may keep for itself.
void* allocate_pages(std::size_t bytes) {
  const std::size_t size = page_bytes(bytes);
  const std::size_t extra = size < kHugePageBytes ? 0 : kHugePageBytes;
  void* const all = ::mmap(nullptr, size + extra, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (all == MAP_FAILED) return nullptr;
  if (extra == 0) return all;
  auto* const begin = static_cast<std::uint8_t*>(all);
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  const std::size_t before = round_up(address, kHugePageBytes) - address;
  if (before > 0) ::munmap(begin, before);
  if (before < extra) ::munmap(begin + before + size, extra - before);
  ::madvise(begin + before, size, MADV_HUGEPAGE);
  return begin + before;
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
    ::munmap(data_, page_bytes(bytes_));
}

}  // namespace chunkhit
