// How many processors this process may use.
#pragma once

#include <cstdint>

namespace chunkhit {

/// CPUs that the affinity mask and the cgroup's quota leave to this process, at least 1.
[[nodiscard]] std::uint32_t allowed_cpus();

}  // namespace chunkhit
