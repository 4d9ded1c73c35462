// What the benchmarks of the reader measure with.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

namespace chunkhit {

constexpr std::size_t kBenchBatch = 256;

/// Seconds that `work` took.
template <class Work>
double seconds_of(Work work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// The one in the middle; the upper of two.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace chunkhit
