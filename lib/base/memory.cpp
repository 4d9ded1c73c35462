#include "base/memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>

#include "base/words.h"

namespace chunkhit {
namespace {

std::optional<std::uint64_t> limit_of(decltype(RLIMIT_AS) resource) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return limit.rlim_cur;
}

std::string limit_text(const char* flag, const std::optional<std::uint64_t>& bytes) {
  if (!bytes) return {};
  return std::string(" (ulimit ") + flag + " is " + bytes_text(static_cast<double>(*bytes)) + ")";
}

}  // namespace

bool has_memory_limit() { return limit_of(RLIMIT_AS).has_value() || limit_of(RLIMIT_DATA).has_value(); }

std::string memory_limit_text() {
  return "needs more memory than can be had" + limit_text("-v", limit_of(RLIMIT_AS)) +
         limit_text("-d", limit_of(RLIMIT_DATA));
}

std::uint64_t open_files_limit() { return limit_of(RLIMIT_NOFILE).value_or(UINT64_MAX); }

std::string open_files_limit_text() {
  const std::optional<std::uint64_t> files = limit_of(RLIMIT_NOFILE);
  return "this process may have " + (files ? count_text(*files) : std::string("no more")) +
         " files open: ulimit -n";
}

namespace {

/// The first number of a file, or nothing where there is no file or no number ("max").
std::optional<std::uint64_t> read_number(const std::string& path) {
  std::ifstream file(path);
  std::uint64_t number = 0;
  if (file >> number) return number;
  return std::nullopt;
}

std::uint64_t free_on_machine() {
  std::ifstream file("/proc/meminfo");
  std::string name, unit;
  std::uint64_t kibibytes = 0;
  while (file >> name >> kibibytes) {
    if (name == "MemAvailable:") return kibibytes * 1024;
    std::getline(file, unit);
  }
  return static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) / 2;
}

/// The path of this process's group below /sys/fs/cgroup (version 2).
std::string group_path() {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("0::")) return line.substr(3);
  return "/";
}

/// What `ulimit -v` leaves, which counts addresses.
std::uint64_t free_addresses() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
  const std::uint64_t pages = read_number("/proc/self/statm").value_or(0);
  return limit.rlim_cur -
         std::min(limit.rlim_cur, pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)));
}

}  // namespace

std::uint64_t available_memory() {
  std::uint64_t left = std::min(free_on_machine(), free_addresses());
  std::string group = group_path();
  while (true) {
    const std::string folder = "/sys/fs/cgroup" + group + (group.ends_with('/') ? "" : "/");
    const auto most = read_number(folder + "memory.max");
    const auto used = read_number(folder + "memory.current");
    if (most && used) left = std::min(left, *most - std::min(*most, *used));
    if (group.empty() || group == "/") return left;
    group.resize(group.rfind('/'));
  }
}

}  // namespace chunkhit
