// How many points of a sweep a test takes: every nth, or all of them in the run of tests/run.sh --deep.
#pragma once

#include <cstddef>
#include <cstdlib>

namespace chunkhit {

/// Returns 1 where CHUNKHIT_TEST_DEEP is set, else `stride`.
inline std::size_t sweep_stride(std::size_t stride) {
  return std::getenv("CHUNKHIT_TEST_DEEP") != nullptr ? 1 : stride;
}

}  // namespace chunkhit
