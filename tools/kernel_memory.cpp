#include "kernel_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <system_error>

#include "base/file.h"

namespace chunkhit {
namespace {

void drop_file(const std::string& path) {
  const InputFile file(path);
  // Only pages that are on disk can be dropped. Where the file system cannot be written, all are.
  static_cast<void>(::fsync(file.fd()));
  static_cast<void>(::posix_fadvise(file.fd(), 0, 0, POSIX_FADV_DONTNEED));
}

}  // namespace

void drop_from_page_cache(const std::string& path) {
  namespace fs = std::filesystem;
  const fs::path given(path);
  const fs::path folder = given.filename() == "manifest.json" ? given.parent_path() : given;
  std::error_code failed;
  const fs::directory_iterator entries(folder.empty() ? fs::path(".") : folder, failed);
  if (failed) return drop_file(path);
  for (const fs::directory_entry& entry : entries)
    if (entry.is_regular_file(failed)) drop_file(entry.path().string());
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
