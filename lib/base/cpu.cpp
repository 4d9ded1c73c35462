#include "base/cpu.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string>

namespace chunkhit {
namespace {

/// CPUs of a cgroup v2 quota ("200000 100000" is two), 0 without one.
double quota_of(const std::string& cpu_max_path) {
  std::ifstream file(cpu_max_path);
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || quota == "max" || period <= 0) return 0;
  return std::strtod(quota.c_str(), nullptr) / period;
}

/// The smallest quota of this process's cgroup and those above it, 0 without one.
double cgroup_quota() {
  std::ifstream file("/proc/self/cgroup");
  std::string line;
  while (std::getline(file, line) && !line.starts_with("0::")) {
  }
  std::string group = line.starts_with("0::") ? line.substr(3) : "";
  double least = 0;
  while (true) {
    const double quota = quota_of("/sys/fs/cgroup" + group + "/cpu.max");
    if (quota > 0 && (least == 0 || quota < least)) least = quota;
    if (group.empty()) return least;
    group.resize(group.rfind('/') == std::string::npos ? 0 : group.rfind('/'));
  }
}

}  // namespace

std::uint32_t allowed_cpus() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  std::uint32_t cpus = 1;
  if (::sched_getaffinity(0, sizeof mask, &mask) == 0) cpus = static_cast<std::uint32_t>(CPU_COUNT(&mask));
  if (const double quota = cgroup_quota(); quota > 0)
    cpus = std::min(cpus, static_cast<std::uint32_t>(std::ceil(quota)));
  return std::max<std::uint32_t>(1, cpus);
}

}  // namespace chunkhit
