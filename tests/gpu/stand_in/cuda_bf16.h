// CUDA's bfloat16, as far as <chunkhit/cuda.h> uses it, on the CPU.
#pragma once

#include <cstdint>

#include "base/half_float.h"

struct __nv_bfloat16 {
  std::uint16_t bits;
};
inline __nv_bfloat16 __float2bfloat16_rn(float value) { return {chunkhit::bfloat16(value)}; }
