// How much memory this process may still take.
#pragma once

#include <cstdint>

namespace chunkhit {

/// Bytes that the machine and the process's cgroups have left, without swapping.
[[nodiscard]] std::uint64_t available_memory();

}  // namespace chunkhit
