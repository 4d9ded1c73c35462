// Whether a process lives, and which one it is: its id is used again by others.
#pragma once

#include <cstdint>
#include <optional>

namespace chunkhit {

/// A process of this machine that has not ended.
struct ProcessState {
  std::uint64_t start = 0;  ///< in clock ticks since the machine's; with the id it names one process
  bool is_known = true;     ///< false: it may live, but too many files are open to read its state
  bool is_stopped = false;  ///< by a signal, or by a debugger
};

/// Reads /proc/PID/stat. Nothing where there is no such process, where only its parent has to fetch its end,
/// or where /proc does not show it.
[[nodiscard]] std::optional<ProcessState> process_state(std::uint64_t pid);

}  // namespace chunkhit
