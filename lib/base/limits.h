// What the system lets this process have, in words for messages.
#pragma once

#include <cstdint>
#include <string>

namespace chunkhit {

/// Whether a limit of this process (`ulimit -v`, `ulimit -d`) may deny memory that the machine has.
[[nodiscard]] bool has_memory_limit();

/// "needs more memory than can be had (ulimit -v is 200.0 MiB)".
[[nodiscard]] std::string memory_limit_text();

/// How many files this process may have open.
[[nodiscard]] std::uint64_t open_files_limit();

/// "this process may have 1024 files open: ulimit -n".
[[nodiscard]] std::string open_files_limit_text();

}  // namespace chunkhit
