#include "base/resources.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <limits>
#include <optional>

#include "base/text.h"
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

/// Calls `look(folder)` for the folder of this process's cgroup (version 2) and of each above it.
template <class Look>
void for_each_cgroup(Look look) {
  std::ifstream file("/proc/self/cgroup");
  std::string group;
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("0::/")) group = line.substr(3);
  while (!group.empty() && group != "/") {
    look("/sys/fs/cgroup" + group);
    group.resize(group.rfind('/'));
  }
  look(std::string("/sys/fs/cgroup"));
}

/// What `ulimit -v` leaves, which counts addresses.
std::uint64_t free_addresses() {
  const std::optional<std::uint64_t> limit = limit_of(RLIMIT_AS);
  if (!limit) return UINT64_MAX;
  const std::uint64_t pages = read_number("/proc/self/statm").value_or(0);
  return *limit - std::min(*limit, pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)));
}

/// CPUs of a cgroup v2 quota ("200000 100000" is two), 0 without one.
double quota_of(const std::string& cpu_max_path) {
  std::ifstream file(cpu_max_path);
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || quota == "max" || period <= 0) return 0;
  return std::strtod(quota.c_str(), nullptr) / period;
}

}  // namespace

bool has_memory_limit() { return limit_of(RLIMIT_AS).has_value() || limit_of(RLIMIT_DATA).has_value(); }

std::string memory_limit_text() {
  return "needs more memory than can be had" + limit_text("-v", limit_of(RLIMIT_AS)) +
         limit_text("-d", limit_of(RLIMIT_DATA));
}

std::uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t all_pages = 0;
  std::uint64_t resident_pages = 0;
  file >> all_pages >> resident_pages;
  return resident_pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

std::uint64_t open_files_limit() { return limit_of(RLIMIT_NOFILE).value_or(UINT64_MAX); }

std::string open_files_limit_text() {
  const std::optional<std::uint64_t> files = limit_of(RLIMIT_NOFILE);
  return "this process may have " + (files ? count_text(*files) : std::string("no more")) +
         " files open: ulimit -n";
}

std::uint64_t available_memory() {
  std::uint64_t left = std::min(free_on_machine(), free_addresses());
  for_each_cgroup([&](const std::string& folder) {
    const auto most = read_number(folder + "/memory.max");
    const auto used = read_number(folder + "/memory.current");
    if (most && used) left = std::min(left, *most - std::min(*most, *used));
  });
  return left;
}

std::uint32_t allowed_cpus() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  std::uint32_t cpus = 1;
  if (::sched_getaffinity(0, sizeof mask, &mask) == 0) cpus = static_cast<std::uint32_t>(CPU_COUNT(&mask));
  for_each_cgroup([&](const std::string& folder) {
    if (const double quota = quota_of(folder + "/cpu.max"); quota > 0)
      cpus = std::min(cpus, static_cast<std::uint32_t>(std::ceil(quota)));
  });
  return std::max<std::uint32_t>(1, cpus);
}

namespace {

std::uint32_t processes_by(std::initializer_list<const char*> names, std::uint32_t max_count) {
  for (const char* const name : names) {
    const char* const text = std::getenv(name);
    if (text == nullptr) continue;
    std::uint32_t count = 0;
    if (parse_all(text, count) && count >= 1 && count <= max_count) return count;
  }
  return 1;
}

}  // namespace

std::uint32_t local_processes() {
  return processes_by({"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"}, 4096);
}

std::uint32_t all_processes() {
  return processes_by({"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE"}, std::numeric_limits<std::uint32_t>::max());
}

std::uint64_t memory_share() { return available_memory() / local_processes(); }

std::uint32_t cpu_share() { return std::max<std::uint32_t>(1, allowed_cpus() / local_processes()); }

}  // namespace chunkhit
