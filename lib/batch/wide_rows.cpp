#include "batch/wide_rows.h"

#include <hwy/cache_control.h>

#include <algorithm>
#include <cstring>

// The code below is compiled once for each instruction set; the processor picks one when it runs.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "batch/wide_rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace chunkhit::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

void widen_ids(const std::uint16_t* HWY_RESTRICT ids, std::size_t count, std::int32_t* HWY_RESTRICT indices) {
  const hn::ScalableTag<std::int32_t> wide;
  const hn::Rebind<std::uint16_t, decltype(wide)> narrow;
  const std::size_t step = hn::Lanes(wide);
  std::size_t at = 0;
  for (; at + step <= count; at += step) {
    hn::StoreU(hn::PromoteTo(wide, hn::LoadU(narrow, ids + at)), wide, indices + at);
  }
  for (; at < count; ++at) indices[at] = ids[at];
}

void scale_bytes(const std::uint8_t* HWY_RESTRICT bytes, float factor, std::size_t count,
                 float* HWY_RESTRICT values) {
  const hn::ScalableTag<float> floats;
  const hn::Rebind<std::int32_t, decltype(floats)> integers;
  const hn::Rebind<std::uint8_t, decltype(floats)> narrow;
  const auto factors = hn::Set(floats, factor);
  const std::size_t step = hn::Lanes(floats);
  std::size_t at = 0;
  for (; at + step <= count; at += step) {
    const auto numbers = hn::ConvertTo(floats, hn::PromoteTo(integers, hn::LoadU(narrow, bytes + at)));
    hn::StoreU(hn::Mul(numbers, factors), floats, values + at);
  }
  for (; at < count; ++at) values[at] = static_cast<float>(bytes[at]) * factor;
}

void stream_zeros(std::uint8_t* bytes, std::size_t count) {
  const hn::ScalableTag<std::uint8_t> u8;
  const std::size_t step = hn::Lanes(u8);
  const std::size_t to_line = (0 - reinterpret_cast<std::uintptr_t>(bytes)) % step;  // a power of two
  std::size_t at = std::min(count, to_line);
  std::memset(bytes, 0, at);
  for (; at + step <= count; at += step) hn::Stream(hn::Zero(u8), u8, bytes + at);
  hwy::FlushStream();
  std::memset(bytes + at, 0, count - at);
}

}  // namespace chunkhit::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace chunkhit {

HWY_EXPORT(widen_ids);
HWY_EXPORT(scale_bytes);
HWY_EXPORT(stream_zeros);

void widen_ids(const std::uint16_t* ids, std::size_t count, std::int32_t* indices) {
  HWY_DYNAMIC_DISPATCH(widen_ids)(ids, count, indices);
}

void scale_bytes(const std::uint8_t* bytes, float factor, std::size_t count, float* values) {
  HWY_DYNAMIC_DISPATCH(scale_bytes)(bytes, factor, count, values);
}

void stream_zeros(std::uint8_t* bytes, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(stream_zeros)(bytes, count);
}

}  // namespace chunkhit
#endif  // HWY_ONCE
