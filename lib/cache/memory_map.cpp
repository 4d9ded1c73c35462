#include "cache/memory_map.h"

#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <new>

namespace chunkhit {
namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr long kXfsMagic = 0x58465342;
constexpr long kZfsMagic = 0x2fc12fc1;

}  // namespace

bool MemoryMap::may_map(int fd) {
  constexpr std::array<long, 7> kLocal{EXT4_SUPER_MAGIC, kXfsMagic,        BTRFS_SUPER_MAGIC,    kZfsMagic,
                                       TMPFS_MAGIC,      F2FS_SUPER_MAGIC, OVERLAYFS_SUPER_MAGIC};
  struct statfs system {};
  return ::fstatfs(fd, &system) == 0 &&
         std::find(kLocal.begin(), kLocal.end(), static_cast<long>(system.f_type)) != kLocal.end();
}

MemoryMap MemoryMap::of_memory(std::size_t bytes) {
  if (bytes == 0) return {};
  void* const data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) throw std::bad_alloc();
  ::madvise(data, bytes, MADV_HUGEPAGE);
  return {static_cast<std::uint8_t*>(data), bytes};
}

MemoryMap MemoryMap::of_file(int fd, std::size_t bytes) {
  if (bytes == 0 || !may_map(fd)) return {};
  void* const data = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, 0);
  if (data == MAP_FAILED) return {};
  return {static_cast<std::uint8_t*>(data), bytes};
}

MemoryMap::~MemoryMap() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
}

void MemoryMap::read_ahead(std::size_t offset, std::size_t bytes) const {
  const std::size_t first = offset / kPageBytes * kPageBytes;
  ::madvise(data_ + first, bytes + (offset - first), MADV_WILLNEED);
}

}  // namespace chunkhit
