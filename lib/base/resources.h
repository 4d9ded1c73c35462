// Memory, open files and CPUs that this process may still use, and the messages if they are not enough.
#pragma once

#include <cstdint>
#include <new>
#include <stdexcept>
#include <string>

#include "chunkhit/error.h"

namespace chunkhit {

/// Whether a limit of this process (`ulimit -v`, `ulimit -d`) may deny memory that the machine has.
[[nodiscard]] bool has_memory_limit();

/// "needs more memory than can be had (ulimit -v is 200.0 MiB)".
[[nodiscard]] std::string memory_limit_text();

/// Memory that this process holds now.
[[nodiscard]] std::uint64_t resident_bytes();

/// How many files this process may have open.
[[nodiscard]] std::uint64_t open_files_limit();

/// "this process may have 1024 files open: ulimit -n".
[[nodiscard]] std::string open_files_limit_text();

/// Bytes that the machine, the process's cgroups and `ulimit -v` have left, without swapping.
[[nodiscard]] std::uint64_t available_memory();

/// Gives what `work` gives; where memory is not to be had, throws try_again with `what`, which says for what,
/// and what to lower.
template <class Text, class Work>
auto with_memory(const Text& what, const Work& work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::try_again, std::string(what));
  } catch (const std::length_error&) {
    throw Error(ErrorCode::try_again, std::string(what));
  }
}

/// The processes of one training on this machine, as torchrun (`LOCAL_WORLD_SIZE`) and Open MPI
/// (`OMPI_COMM_WORLD_LOCAL_SIZE`) say; else 1.
[[nodiscard]] std::uint32_t local_processes();
/// The same of all machines: `WORLD_SIZE`, `OMPI_COMM_WORLD_SIZE`.
[[nodiscard]] std::uint32_t all_processes();

/// What is left to one of them.
[[nodiscard]] std::uint64_t memory_share();
[[nodiscard]] std::uint32_t cpu_share();

/// CPUs that the affinity mask and the cgroup's quota leave to this process, at least 1.
[[nodiscard]] std::uint32_t allowed_cpus();

}  // namespace chunkhit
