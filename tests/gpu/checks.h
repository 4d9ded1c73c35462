// Checks of the GPU's tests, which need no test framework: a bare machine has none.
#pragma once

#include <cuda_runtime.h>

#include <cstdio>
#include <exception>
#include <string>

namespace gpu_tests {

inline int checks = 0, failures = 0;

inline void expect(bool holds, const std::string& what) {
  ++checks;
  if (holds) return;
  // The first ones say enough.
  if (++failures <= 20) std::printf("FAILED: %s\n", what.c_str());
}

/// Expects an exception whose message has this text.
template <class Work>
void expect_error(const std::string& text, const Work& work) {
  try {
    work();
    expect(false, "no error, expected: " + text);
  } catch (const std::exception& error) {
    expect(std::string(error.what()).find(text) != std::string::npos,
           "error: " + std::string(error.what()) + ", expected: " + text);
  }
}

/// Whether there is a GPU; says so where not.
inline bool has_gpu() {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess && count > 0) return true;
  std::printf("skipped: no GPU here\n");
  return false;
}

inline int report(const char* name) {
  std::printf("%s: %d checks, %d failures\n", name, checks, failures);
  return failures == 0 && checks > 0 ? 0 : 1;
}

}  // namespace gpu_tests
