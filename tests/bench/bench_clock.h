// What the benchmarks of the reader measure with.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <vector>

#include "cache/chunk_buffers.h"

namespace chunkhit {

constexpr std::size_t kBenchBatch = 256;

/// Seconds that `work` took.
template <class Work>
double seconds_of(Work work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Gets memory from the host of a virtual machine, which takes back what is free: a page from there takes
/// twenty times as long as one that the kernel has, and is not the loader's time.
inline void touch_free_memory() {
  constexpr std::size_t kBytes = std::size_t{2} << 30;
  const MemoryMap memory = MemoryMap::of_memory(kBytes);
  std::memset(memory.data(), 1, memory.size());
}

/// The one in the middle; the upper of two.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace chunkhit
