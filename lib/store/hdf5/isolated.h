// The HDF5 library in a child process: 1.10 crashes over some damaged files, and never ends over others.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/serving_child.h"

namespace chunkhit {

/// Forks while no other thread is inside of the HDF5 library; what the child finds of it is whole.
[[nodiscard]] pid_t fork_outside_hdf5();

/// How a child is made that reads files: with 5 seconds at a time for small ones, at most 60 for large ones.
[[nodiscard]] ChildOptions hdf5_child(const std::vector<std::string>& paths);

/// Calls `read(i)` for each of `paths` in one child, in order, and `use(i, message)` here with what it gave.
/// The child costs some 0.1 ms, and as much again for each GB of memory that this process has. Where there
/// can be no child, `read` runs here. Throws what `read` threw, bad_data naming the file where the
/// library crashed or did not come on, and try_again where somebody killed the child.
void read_isolated(const std::vector<std::string>& paths, const std::function<ByteBuffer(std::size_t)>& read,
                   const std::function<void(std::size_t, Bytes)>& use);

}  // namespace chunkhit
