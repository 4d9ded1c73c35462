// Runs a check once for every instruction set that this machine and this build share.
#pragma once

// Code for AVX-512 VNNI, which lib/transform/vnni_mix.cpp has, is a target that has to be asked for.
#define HWY_WANT_AVX3_DL
#include <hwy/highway.h>

#include <cstdint>

namespace chunkhit {

/// Calls `check(name)` with each instruction set in force, the scalar one included.
template <class Check>
void for_each_simd_target(Check check) {
  for (std::int64_t left = hwy::SupportedTargets() & HWY_TARGETS; left != 0; left &= left - 1) {
    const std::int64_t target = left & -left;
    // Files that have no code for VNNI use that for AVX-512 on such a machine.
    hwy::SetSupportedTargetsForTest(target == HWY_AVX3_DL ? HWY_AVX3_DL | HWY_AVX3 : target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    check(hwy::TargetName(target));
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace chunkhit
