#include "kernel_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <vector>

#include "base/bytes.h"
#include "base/file.h"

namespace chunkhit {
namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr std::uint64_t kFewOf = 64;  // a file of 64 pages may keep one: the kernel holds some for itself

/// The bytes of a file that are in the page cache. The kernel does not tell this to a process that may not
/// write to the file.
std::uint64_t cached_bytes(const InputFile& file, const FileDescriptor& fd) {
  const std::size_t bytes = file.byte_count();
  if (bytes == 0 || ::access(file.path().c_str(), W_OK) != 0) return 0;
  // Only asked about, never read.
  void* const map = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (map == MAP_FAILED) return 0;
  std::vector<unsigned char> pages(round_up(bytes, kPageBytes) / kPageBytes);
  const bool is_known = ::mincore(map, bytes, pages.data()) == 0;
  ::munmap(map, bytes);
  if (!is_known) return 0;
  const auto cached =
      std::count_if(pages.begin(), pages.end(), [](unsigned char page) { return page % 2 != 0; });
  return static_cast<std::uint64_t>(cached) * kPageBytes;
}

std::uint64_t drop_file(const std::string& path) {
  const InputFile file(path);
  // Only pages that are on disk can be dropped. Where the file system cannot be written, all are.
  const FileDescriptor fd = file.duplicate();
  static_cast<void>(::fsync(fd.get()));
  static_cast<void>(::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED));
  const std::uint64_t stayed = cached_bytes(file, fd);
  return stayed > file.byte_count() / kFewOf ? stayed : 0;
}

}  // namespace

std::uint64_t drop_from_page_cache(const std::string& path) {
  namespace fs = std::filesystem;
  const fs::path given(path);
  const fs::path folder = given.filename() == "manifest.json" ? given.parent_path() : given;
  std::error_code failed;
  const fs::directory_iterator entries(folder.empty() ? fs::path(".") : folder, failed);
  if (failed) return drop_file(path);
  std::uint64_t stayed = 0;
  for (const fs::directory_entry& entry : entries)
    if (entry.is_regular_file(failed)) stayed += drop_file(entry.path().string());
  return stayed;
}

std::uint64_t peak_rss_bytes() {
  // Not getrusage: its peak is that of the program before exec, too.
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::uint64_t kibibytes = 0;
    if (word == "VmHWM:" && status >> kibibytes) return kibibytes * 1024;
  }
  return 0;
}

}  // namespace chunkhit
