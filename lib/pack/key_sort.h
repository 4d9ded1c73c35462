// Sorts short lists of keys: the entries of a row.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace chunkhit {

/// Sorts keys by their upper 32 bits; keys with equal ones stay in their order. Keeps a buffer, so each
/// thread has its own.
class KeySort {
 public:
  void sort(std::span<std::uint64_t> keys);

 private:
  std::vector<std::uint64_t> other_;
};

}  // namespace chunkhit
