// How much memory this process may still take, and what is said where it does not suffice.
#pragma once

#include <cstdint>
#include <new>
#include <stdexcept>
#include <string>

#include "chunkhit/error.h"

namespace chunkhit {

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

}  // namespace chunkhit
