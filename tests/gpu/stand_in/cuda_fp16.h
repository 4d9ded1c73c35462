// CUDA's half, as far as <chunkhit/cuda.h> uses it, on the CPU.
#pragma once

#include <cstdint>

#include "base/half_float.h"

struct __half {
  std::uint16_t bits;
};
inline __half __float2half_rn(float value) { return {chunkhit::half_float(value)}; }
